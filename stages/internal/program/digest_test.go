package program_test

import (
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestDigestOfComputedWeights checks that weights that ONNX Runtime computed are identified by their
// expressions, not by their bits, which depend on the processor, also where passes fold them into others.
// Weights of the file are identified by their bits.
func TestDigestOfComputedWeights(t *testing.T) {
	modeltest.Runtime(t)
	build := func(seed float64, op string) *program.Net {
		weights := []*onnxpb.TensorProto{
			modeltest.Noise("w0", seed, 3, 3, 2, 2), modeltest.Noise("factor", 0.3, 1), modeltest.Noise("w2",
				0.2, 3, 3, 1, 1),
			modeltest.Noise("scale", 0.1, 3), modeltest.Noise("shift", 0.4, 3), modeltest.Noise("mean", 0.5,
				3), onnx.FloatTensor("variance", []float32{1, 2, 3}, 3),
		}
		n, _ := small3(t, 17, weights,
			onnx.NewNode("exp", op, []string{"factor"}, []string{"e"}),
			onnx.NewNode("product", "Mul", []string{"w0", "e"}, []string{"w"}),
			onnx.NewNode("conv", "Conv", []string{"input", "w"}, []string{"f"}),
			onnx.NewNode("norm", "BatchNormalization", []string{"f", "scale", "shift", "mean", "variance"},
				[]string{"n"}),
			onnx.NewNode("relu", "Relu", []string{"n"}, []string{"r"}),
			onnx.NewNode("conv2", "Conv", []string{"r", "w2"}, []string{"c"}),
		)
		return n
	}
	digest := func(n *program.Net, turned func(computed bool) bool) (string, int) {
		t.Helper()
		d, count, err := program.Digests(t.Context(), n, stagetest.NewSlot(),
			lower.Question{Rules: relevance.Derivative()}, turned)
		if err != nil {
			t.Fatal(err)
		}
		return d.String(), count
	}
	n := build(0.7, "Exp")
	plain, _ := digest(n, func(bool) bool { return false })
	if d, count := digest(n, func(computed bool) bool { return computed }); count == 0 || d != plain {
		t.Errorf("%d weights that were computed with other last bits make another program: %t", count,
			d != plain)
	}
	if d, count := digest(n, func(computed bool) bool { return !computed }); count == 0 || d == plain {
		t.Errorf("%d other weights of the file make the same program", count)
	}
	if d, _ := digest(build(0.7, "Exp"), func(bool) bool { return false }); d != plain {
		t.Error("the same file makes another program")
	}
	for what, other := range map[string]*program.Net{"operator": build(0.7, "Sin"),
		"weight": build(0.8, "Exp")} {
		if d, _ := digest(other, func(bool) bool { return false }); d == plain {
			t.Errorf("another %s that a weight is computed from makes the same program", what)
		}
	}
}
