package attribute

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestRectifiersOfAPositiveNet checks that guided backpropagation and deconvolution are the gradient where
// nothing is ever negative.
func TestRectifiersOfAPositiveNet(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(golden.Dir(t), "models", "smallcnn.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range m.Proto.Graph.Initializer {
		v, err := onnx.Float32s(w)
		if err != nil {
			continue
		}
		shape := make([]int, len(w.Dims))
		for k, d := range w.Dims {
			shape[k] = int(d)
		}
		for k := range v {
			v[k] = float32(math.Abs(float64(v[k]))) + 1e-3
		}
		m.Proto.Graph.Initializer[i] = onnx.FloatTensor(w.Name, v, shape...)
	}
	if b, err = m.Encode(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "positive.onnx")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	x := make([]float32, 3*32*32)
	for i := range x {
		x[i] = float32(0.5 + 0.5*math.Sin(float64(i)))
	}
	net := modeltest.Model(t, model.ONNXParams{Path: path, Preset: "unit"})
	at := func(s stages.Stage, params any) []float32 {
		return oneMap(t, s, params, net, x, []int{3, 32, 32}, 3)
	}
	want := at(Saliency, &SaliencyParams{plain(unreduced()), false})
	if d := cmp.Diff(want, at(GuidedBackprop, &GuidedBackpropParams{unreduced(), false})); d != "" {
		t.Errorf("guided backpropagation isn't the gradient: %s", d)
	}
	if d := cmp.Diff(want, at(Deconvolution, &DeconvolutionParams{unreduced()})); d != "" {
		t.Errorf("deconvolution isn't the gradient: %s", d)
	}
}

// TestNoRectifiers checks that a model without rectifiers is asked for its derivative by the methods that
// change what passes one, as by others, and a model with some isn't.
func TestNoRectifiers(t *testing.T) {
	for net, plain := range map[string]bool{"timm_vit_op17": true, "smallcnn": false} {
		n := modeltest.Net(t, modeltest.Official(t, net, 0))
		e := &stages.Env{Slot: stagetest.NewSlot()}
		ask := func(b backwardParams) string {
			t.Helper()
			passes, err := b.backwardPasses(t.Context(), e, n)
			if err != nil {
				t.Fatal(err)
			}
			return passes[len(passes)-1].question.String()
		}
		want := ask(SaliencyParams{Differentiated: Differentiated{Tapped: tapped()}})
		for name, b := range map[string]backwardParams{
			"guided-backprop": GuidedBackpropParams{tapped(),
				false}, "deconvolution": DeconvolutionParams{tapped()},
			"guided-grad-cam": GuidedGradCAMParams{Tapped: atFinal(), Upsample: "nearest"},
		} {
			if got := ask(b); (got == want) != plain {
				t.Errorf("%s, %s: %s; saliency asks %s", net, name, got, want)
			}
		}
	}
}
