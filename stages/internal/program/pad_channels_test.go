package program_test

import (
	"math"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// perceptron writes a net of 2 classes and hidden channels with GELU, whose products are a MatMul with
// weights that can be read in two ways and another, or each a Gemm, of which the last is scaled.
func perceptron(t *testing.T, hidden int, gemm bool) model.ONNXParams {
	t.Helper()
	const inputs, classes = 12, 2
	weights := []*onnxpb.TensorProto{
		onnx.IntTensor("row", []int64{-1, inputs}, 2),
		modeltest.Noise("w", 0.7, inputs, hidden), modeltest.Noise("b", 0.3, hidden), modeltest.Noise("v",
			0.9, hidden, classes),
		onnx.FloatTensor("root", []float32{math.Sqrt2}), onnx.FloatTensor("one",
			[]float32{1}), onnx.FloatTensor("half", []float32{0.5}),
	}
	node := func(op string, out string, in ...string) *onnxpb.NodeProto {
		return onnx.NewNode(out, op, in, []string{out})
	}
	first, last := []*onnxpb.NodeProto{node("MatMul", "p", "x", "w"),
		node("Add", "h", "p", "b")}, node("MatMul", "logits", "y", "v")
	if gemm {
		first = []*onnxpb.NodeProto{node("Gemm", "h", "x", "w", "b")}
		last = onnx.NewNode("logits", "Gemm", []string{"y", "v"}, []string{"logits"},
			onnx.Attr{Name: "alpha", Value: float32(3)})
	}
	nodes := append([]*onnxpb.NodeProto{node("Reshape", "x", "input", "row")}, first...)
	nodes = append(nodes, node("Div", "u", "h", "root"), node("Erf", "e", "u"), node("Add", "f", "e", "one"),
		node("Mul", "g", "h", "f"), node("Mul", "y", "g", "half"), last)
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
		Graph: &onnxpb.GraphProto{Name: "g", Node: nodes, Initializer: weights},
	}}
	float := onnxpb.TensorProto_FLOAT
	m.SetInputs(onnx.Value{Name: "input", Elem: float, Shape: []int{-1, 3, 2, 2}, Known: true})
	m.SetOutputs(onnx.Value{Name: "logits", Elem: float, Shape: []int{-1, classes}, Known: true})
	return model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Size: picture.Size{H: 2, W: 2}}
}

// TestPadChannels checks that a hidden layer whose rows alias in the cache is padded unless a question is
// about it, that padding changes neither answers nor derivatives by a bit, and that other layers keep their
// shape.
func TestPadChannels(t *testing.T) {
	modeltest.Runtime(t)
	for _, gemm := range []bool{false, true} {
		for hidden, wider := range map[int]bool{1024: true, 1000: false} {
			n := net(t, perceptron(t, hidden, gemm))
			slot := threaded{1, stagetest.NewSlot()}
			plain := lower.Question{Rules: relevance.Derivative()}
			if got := program.Widest(t.Context(), t, n, slot,
				plain); got != hidden+map[bool]int{true: 16}[wider] {
				t.Errorf("%d channels become %d", hidden, got)
			}
			// Rules that aren't derivatives keep the layer's shape.
			same := lower.Question{Rules: apart()}
			if got := program.Widest(t.Context(), t, n, slot, same); got != hidden {
				t.Errorf("by other rules %d channels become %d", hidden, got)
			}
			answers, derivatives := differentiate(t, n, slot, plain, 2, 2)
			wantAnswers, wantDerivatives := differentiate(t, n, slot, same, 2, 2)
			if !sameBits(answers, wantAnswers) || !sameBits(derivatives, wantDerivatives) {
				t.Errorf("%d channels, Gemm %t: other bits", hidden, gemm)
			}
			for _, v := range layers(t, n, slot, 2, 4) {
				if got, _ := differentiate(t, n, slot, lower.Question{Rules: relevance.Derivative(),
					Layer: v}, 2, 2); !sameBits(got, answers) {
					t.Errorf("%d channels, Gemm %t: other bits with a look at %q", hidden, gemm, v)
				}
			}
		}
	}
}
