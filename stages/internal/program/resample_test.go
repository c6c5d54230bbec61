package program_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestResample holds that a Resize that filters, or keeps the aspect ratio, has as derivative the weights
// that ONNX Runtime's own Resize shows at images of a single pixel, for drawn modes, scales and sizes; a
// CenterCropPad behind it crops or pads what it returns.
func TestResample(t *testing.T) {
	modeltest.Runtime(t)
	r := rand.New(rand.NewPCG(28, 18))
	choose := func(from ...string) string { return from[r.IntN(len(from))] }
	for k := range 60 {
		mode := choose("linear", "cubic")
		place := choose("half_pixel", "half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners",
			"half_pixel_symmetric")
		policy := choose("stretch", "not_larger", "not_smaller")
		exclude, antialias := 0, min(r.IntN(3), 1)
		if mode == "cubic" {
			exclude = r.IntN(2)
		}
		scaled := r.IntN(3) == 0
		if scaled {
			policy = "stretch"
		}
		attrs := []onnx.Attr{{Name: "mode", Value: mode}, {Name: "antialias", Value: antialias},
			{Name: "coordinate_transformation_mode", Value: place},
			{Name: "exclude_outside", Value: exclude}, {Name: "axes", Value: []int64{2, 3}},
			{Name: "keep_aspect_ratio_policy", Value: policy}}
		if r.IntN(2) == 0 {
			attrs = append(attrs, onnx.Attr{Name: "cubic_coeff_a", Value: float32(-0.5)})
		}
		in := []string{"input", "", "", "to"}
		to := onnx.IntTensor("to", []int64{int64(2 + r.IntN(12)), int64(2 + r.IntN(12))}, 2)
		if scaled {
			in = in[:3]
			in[2], to = "to", onnx.FloatTensor("to", []float32{0.3 + 1.5*r.Float32(), 0.3 +
				1.5*r.Float32()}, 2)
		}
		if k == 0 { // of scales too small to change a size
			to = onnx.FloatTensor("to", []float32{1.0013, 1.037}, 2)
			in, attrs = []string{"input", "", "to"}, attrs[:1:1]
			attrs = append(attrs, onnx.Attr{Name: "axes", Value: []int64{2, 3}})
		}
		name := fmt.Sprint(k, attrs, to, in)
		h, w := 4+r.IntN(5), 4+r.IntN(5)
		weights := []*onnxpb.TensorProto{to, onnx.IntTensor("window", []int64{int64(h), int64(w)}, 2),
			modeltest.Noise("v", 0.37, 3*h*w, 3), onnx.IntTensor("high", []int64{0, 3, 1, 1}, 4)}
		n, _ := small3(t, int64(18+r.IntN(3)), weights,
			onnx.NewNode("resize", "Resize", in, []string{"r"}, attrs...),
			onnx.NewNode("crop", "CenterCropPad", []string{"r", "window"}, []string{"p"},
				onnx.Attr{Name: "axes", Value: []int64{2, 3}}),
			onnx.NewNode("flatten", "Flatten", []string{"p"}, []string{"f"}),
			onnx.NewNode("linear", "MatMul", []string{"f", "v"}, []string{"s"}),
			onnx.NewNode("back", "Reshape", []string{"s", "high"}, []string{"c"}))
		slot := threaded{1, stagetest.NewSlot()}
		const batch, pixels = 8, 3 * 8 * 9
		f, err := n.Forward(t.Context(), slot, batch)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := make([]float32, 3*pixels) // by class and pixel
		for from := 0; from < pixels; from += batch {
			for i := range f.Batch {
				clear(f.Image(i))
				f.Image(i)[from+i] = 1
			}
			if err := f.Run(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i := range f.Batch {
				for class, y := range f.Row(i) {
					want[class*pixels+from+i] = y
				}
			}
		}
		y, got := differentiate(t, n, slot, lower.Question{Rules: relevance.Derivative()}, 3, 3)
		if e := deviation(got, want); e > 1e-5 {
			t.Errorf("%s: the derivatives deviate by %.1e from ONNX Runtime's weights", name, e)
		}
		if e := deviation(y, classify(t, n, slot, 3, 3)); e > 1e-5 {
			t.Errorf("%s: the answers deviate by %.1e from the file's", name, e)
		}
	}
}
