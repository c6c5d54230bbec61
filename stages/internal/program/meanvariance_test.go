package program_test

import (
	"math"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestMeanVarianceNormalization holds that the operator has the answers and derivatives of
// InstanceNormalization, which normalises the same, on a blank image too.
func TestMeanVarianceNormalization(t *testing.T) {
	modeltest.Runtime(t)
	weights := func() []*onnxpb.TensorProto {
		return []*onnxpb.TensorProto{modeltest.Noise("w", 0.7, 3, 3, 2, 2),
			onnx.FloatTensor("one", []float32{1, 1, 1}, 3), onnx.FloatTensor("zero", []float32{0, 0, 0}, 3)}
	}
	of := func(normalise *onnxpb.NodeProto) (answer, derivative []float32) {
		n, _ := small3(t, 13, weights(),
			normalise,
			onnx.NewNode("conv", "Conv", []string{"n", "w"}, []string{"f"}),
			onnx.NewNode("relu", "Relu", []string{"f"}, []string{"c"}),
		)
		slot := threaded{1, stagetest.NewSlot()}
		g, err := n.Gradient(t.Context(), slot, lower.Question{}, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Run(t.Context()); err != nil { // nothing is explained, of blank images
			t.Fatal(err)
		}
		for i, v := range g.Gradient(0) {
			if v != 0 {
				t.Fatalf("a blank image has the derivative %v at %d", v, i)
			}
		}
		return differentiate(t, n, slot, lower.Question{Rules: relevance.Derivative()}, 2, 2)
	}
	a, da := of(onnx.NewNode("n", "MeanVarianceNormalization", []string{"input"}, []string{"n"},
		onnx.Attr{Name: "axes", Value: []int64{2, 3}}))
	b, db := of(onnx.NewNode("n", "InstanceNormalization", []string{"input", "one", "zero"}, []string{"n"},
		onnx.Attr{Name: "epsilon", Value: float32(1e-12)}))
	for _, x := range []struct {
		what      string
		got, want []float32
	}{{"answers", a, b}, {"derivatives", da, db}} {
		apart, size := 0.0, 0.0
		for i := range x.want {
			apart += math.Pow(float64(x.got[i])-float64(x.want[i]), 2)
			size += math.Pow(float64(x.want[i]), 2)
		}
		if !(size > 0 && math.Sqrt(apart/size) <= 2e-6) {
			t.Errorf("%s differ by %.2g", x.what, math.Sqrt(apart/size))
		}
	}
}
