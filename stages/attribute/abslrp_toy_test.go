package attribute

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
)

// TestToyNets: the nets of Figure 1 of Vukadin et al. share relevance as the paper says, to the last digit.
// LRP-α1β0 gives both inputs half, whatever the weights.
func TestToyNets(t *testing.T) {
	for name, want := range map[string][2]float32{"equal": {0.5, 0.5}, "larger": {0.25, 0.75},
		"largest": {0.1, 0.9}} {
		path := filepath.Join("..", "..", "experiments", "papers", "toy", name+".onnx")
		net := modeltest.Model(t, model.ONNXParams{Path: path, Preset: "unit"})
		ones := []float32{1, 1, 1, 1, 1, 1}
		alphaBeta := LRPAlphaBeta.NewParams().(*LRPAlphaBetaParams)
		alphaBeta.Alpha, alphaBeta.Beta, alphaBeta.Start, alphaBeta.Reduce = 1, 0, "one-hot", "none"
		alphaBeta.Stabiliser = 0
		for _, tt := range []struct {
			stage  stages.Stage
			params any
			want   [2]float32
		}{{AbsLRP, absLRP("paper", "none"), want}, {LRPAlphaBeta, alphaBeta, [2]float32{0.5, 0.5}}} {
			got := oneMap(t, tt.stage, tt.params, net, ones, []int{3, 1, 2}, 0)
			if sum := got[0] + got[1]; slices.Max(got[2:]) != 0 || slices.Min(got[2:]) != 0 ||
				got[0]/sum != tt.want[0] || got[1]/sum != tt.want[1] {
				t.Errorf("%s: %s gives %v, want %v and nothing for green and blue", name, tt.stage.Name, got,
					tt.want)
			}
		}
	}
}
