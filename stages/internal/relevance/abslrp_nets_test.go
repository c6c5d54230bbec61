package relevance_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestAbsLRPScales checks that omitting scales changes nothing: the official variant equals the one with all
// modules' scales, and the paper's map without its scales equals the one with them, because a scale on a cut
// only scales the whole map.
func TestAbsLRPScales(t *testing.T) {
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	official, quickstart := filepath.Join(golden.Dir(t), "models"), filepath.Join(root, "experiments",
		"quickstart")
	for _, path := range []string{
		filepath.Join(official, "smallcnn.onnx"), filepath.Join(official, "timm_resnet_basic2_bn.onnx"),
		filepath.Join(official, "timm_vit_op17.onnx"), filepath.Join(quickstart, "resnet.onnx"),
		filepath.Join(quickstart, "vit.onnx"),
	} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			n := modeltest.Net(t, modeltest.Model(t, model.ONNXParams{Path: path}))
			for _, variant := range []relevance.AbsLRPVariant{relevance.AbsLRPOfficial,
				relevance.AbsLRPPaper} {
				rules := relevance.AbsLRP{Variant: variant, MaxPool: relevance.MaxPoolAuto,
					Ablation: relevance.AblationNone}
				got, want := relevanceOf(t, n, rules), relevanceOf(t, n, rules.Everywhere())
				off, all := 0.0, 0.0
				for i := range want {
					off += math.Pow(got[i]-want[i], 2)
					all += math.Pow(want[i], 2)
				}
				// Every scale rounds, and the summands of a residual stream partly cancel.
				if !(math.Sqrt(off) < 1e-5*math.Sqrt(all)) {
					t.Errorf("%s: relative deviation %.2g", variant, math.Sqrt(off/all))
				}
			}
		})
	}
}

// relevanceOf returns the relevance of a class at the second image of two, with a sum of magnitudes of 1.
func relevanceOf(t *testing.T, n *program.Net, rules relevance.AbsLRP) []float64 {
	t.Helper()
	g, err := n.Gradient(t.Context(), stagetest.NewSlot(), lower.Question{Rules: rules.Policy()}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		for k := range g.Image(i) {
			g.Image(i)[k] = float32(math.Sin(float64(k)*0.31+float64(i)) + math.Sin(float64(k)*0.013))
		}
		clear(g.Counts("", i))
		g.Counts("", i)[3+i] = 1
	}
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out []float64
	sum := 0.0
	for _, v := range g.Gradient(1) {
		out = append(out, float64(v))
		sum += math.Abs(float64(v))
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}
