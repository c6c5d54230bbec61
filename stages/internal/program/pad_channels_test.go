package program_test

import (
	"math"
	"slices"
	"testing"

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

// TestPadChannels holds that a hidden layer whose rows clash gets more channels unless somebody looks at it,
// that this changes neither answers nor derivatives by a bit, and that other layers stay as they are.
func TestPadChannels(t *testing.T) {
	modeltest.Runtime(t)
	for _, gemm := range []bool{false, true} {
		for hidden, wider := range map[int]bool{1024: true, 1000: false} {
			n := net(t, perceptron(t, hidden, gemm))
			slot := threaded{1, stagetest.NewSlot()}
			plain := program.Question{Rules: relevance.Derivative()}
			if got := program.Widest(t.Context(), t, n, slot,
				plain); got != hidden+map[bool]int{true: 16}[wider] {
				t.Errorf("%d channels become %d", hidden, got)
			}
			// Rules of other kinds keep the layer as it is.
			same := program.Question{Rules: apart()}
			if got := program.Widest(t.Context(), t, n, slot, same); got != hidden {
				t.Errorf("by other rules %d channels become %d", hidden, got)
			}
			answers, derivatives := differentiate(t, n, slot, plain, 2, 2)
			wantAnswers, wantDerivatives := differentiate(t, n, slot, same, 2, 2)
			if !sameBits(answers, wantAnswers) || !sameBits(derivatives, wantDerivatives) {
				t.Errorf("%d channels, Gemm %t: other bits", hidden, gemm)
			}
			for _, v := range layers(t, n, slot, 2, 4) {
				if got, _ := differentiate(t, n, slot, program.Question{Rules: relevance.Derivative(),
					Layer: v}, 2, 2); !sameBits(got, answers) {
					t.Errorf("%d channels, Gemm %t: other bits with a look at %q", hidden, gemm, v)
				}
			}
		}
	}
}

// TestGemmAlpha holds that a Gemm scales its product by the power of two that scaled what it multiplies,
// besides what it scales it by anyway, unless somebody looks at that or what it's multiplied with is
// computed, that neither answers nor derivatives change by a bit, and that other numbers stay where they are.
func TestGemmAlpha(t *testing.T) {
	modeltest.Runtime(t)
	n := net(t, perceptron(t, 1000, true))
	slot := threaded{1, stagetest.NewSlot()}
	plain, same := program.Question{Rules: relevance.Derivative()}, program.Question{Rules: apart()}
	alphas := func(q program.Question, computed bool) (out []float32) {
		g, err := n.Graph(t.Context(), slot, 2)
		if err != nil {
			t.Fatal(err)
		}
		if computed {
			f := g.Fragment()
			f.OpTo("weights", "Identity", []string{"v"})
			g.Types["weights"] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: g.Shape("v")}
			for _, node := range g.Proto.Graph.Node {
				onnx.Retake(node, map[string]string{"v": "weights"})
			}
			g.Before(f)
		}
		if err := program.Compile(n, g, 2, q); err != nil {
			t.Fatal(err)
		}
		for _, node := range g.Proto.Graph.Node {
			if n := (onnx.Node{NodeProto: node}); n.OpType == "Gemm" {
				out = append(out, n.Float("alpha", 1))
			}
		}
		return out
	}
	look := program.Question{Rules: relevance.Derivative(), Layer: "y"}
	// Two products, each forwards and back.
	for _, tt := range []struct {
		name     string
		q        program.Question
		computed bool
		want     []float32
	}{
		{"by derivatives", plain, false, []float32{1, 1.5, 1.5, 1}},
		{"by other rules", same, false, []float32{1, 3, 3, 1}},
		{"with a look at what is scaled", look, false, []float32{1, 3, 3}},
		{"with weights that are computed", plain, true, []float32{1, 3, 3, 1}},
	} {
		if got := alphas(tt.q, tt.computed); !slices.Equal(got, tt.want) {
			t.Errorf("%s, products are scaled by %v, not %v", tt.name, got, tt.want)
		}
	}
	answers, derivatives := differentiate(t, n, slot, plain, 2, 2)
	wantAnswers, wantDerivatives := differentiate(t, n, slot, same, 2, 2)
	if !sameBits(answers, wantAnswers) || !sameBits(derivatives, wantDerivatives) {
		t.Error("other bits")
	}
}
