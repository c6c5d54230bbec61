package attribute

import (
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/program"
)

// TestAGISteps checks that a step follows the false class's derivative by so much of a pixel's range and
// stays within it, also where a model takes negatives.
func TestAGISteps(t *testing.T) {
	for _, std := range []float64{0.5, -0.5} {
		n := &program.Net{Spec: modelfile.Spec{
			Height: 1, Width: 4, Channels: 1, Scale: 1, Mean: []float64{0.5}, Std: []float64{std},
		}}
		x := []float32{0, 0, 0.9, -0.9} // between -1 and 1
		w := &trajectory{x: slices.Clone(x), from: x, sum: make([]float64, 4)}
		AGIParams{Variant: "paper", Step: 0.125}.step(n, w, []float32{2, -2, 3, -3}, []float32{1, 1, 1, 1})
		if want := []float32{0.25, -0.25, 1, -1}; !slices.Equal(w.x, want) {
			t.Errorf("std %v: the step leads to %v, want %v", std, w.x, want)
		}
		if w.sum[0] != -0.25 || w.sum[1] != 0.25 {
			t.Errorf("std %v: it took %v from the explained number", std, w.sum)
		}
	}
}
