package program_test

import (
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// either returns an If.
func either(condition, out string, then, otherwise *onnxpb.GraphProto) *onnxpb.NodeProto {
	n := onnx.NewNode(out, "If", []string{condition}, []string{out})
	n.Attribute = []*onnxpb.AttributeProto{
		{Name: "then_branch", Type: onnxpb.AttributeProto_GRAPH, G: then},
		{Name: "else_branch", Type: onnxpb.AttributeProto_GRAPH, G: otherwise},
	}
	return n
}

// making returns a graph of nodes that makes the values called outputs.
func making(nodes []*onnxpb.NodeProto, outputs ...string) *onnxpb.GraphProto {
	g := &onnxpb.GraphProto{Name: "branch", Node: nodes}
	for _, v := range outputs {
		g.Output = append(g.Output, &onnxpb.ValueInfoProto{Name: v, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{ElemType: int32(onnxpb.TensorProto_FLOAT)}}}})
	}
	return g
}

// TestBranches holds that a net whose weights come out of Ifs that the image's shape
// decides, one inside the other, has the answers and derivatives, to the bit, of the
// net without them.
func TestBranches(t *testing.T) {
	plain := filepath.Join("testdata", "nets", "grey.onnx")
	m, err := onnx.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	g := m.Proto.Graph
	g.Initializer = append(g.Initializer, onnx.IntTensor("four", []int64{4}))
	nodes := []*onnxpb.NodeProto{
		onnx.NewNode("", "Shape", []string{m.Inputs()[0].Name}, []string{"shape"}),
		onnx.NewNode("", "Size", []string{"shape"}, []string{"rank"}),
		onnx.NewNode("", "Equal", []string{"rank", "four"}, []string{"is four"}),
		onnx.NewNode("", "Less", []string{"rank", "four"}, []string{"is less"}),
	}
	one := func(op, in, out string) *onnxpb.GraphProto {
		return making([]*onnxpb.NodeProto{onnx.NewNode("", op, []string{in}, []string{out})}, out)
	}
	large := 0
	for _, w := range g.Initializer {
		v, err := onnx.Float32s(w)
		if err != nil || len(v) < 32 {
			continue
		}
		name := w.Name
		w.Name, w.RawData, w.FloatData = name+"/negative", nil, nil
		for _, x := range v {
			w.FloatData = append(w.FloatData, -x)
		}
		inner := making([]*onnxpb.NodeProto{either("is less", "inner", one("Abs", w.Name, "value"), one("Neg", w.Name, "value"))}, "inner")
		nodes = append(nodes, either("is four", name, inner, one("Exp", w.Name, "value")))
		large++
	}
	if large < 2 {
		t.Fatalf("the net has %d weights of 128 bytes or more", large)
	}
	g.Node = append(nodes, g.Node...)
	branched := modeltest.File(t, m)
	answers := func(path string) (forward, gradient, derivatives []float32) {
		n := net(t, model.ONNXParams{Path: path, Preset: "unit"})
		slot := threaded{1, stagetest.NewSlot()}
		f, err := n.Forward(t.Context(), slot, 2)
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Batch {
			wave(i, f.Image(i))
		}
		if err := f.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range f.Batch {
			forward = append(forward, f.Row(i)...)
		}
		gradient, derivatives = differentiate(t, n, slot, program.Question{Rules: relevance.Derivative()}, 2, 2)
		return forward, gradient, derivatives
	}
	wantForward, wantGradient, wantDerivatives := answers(plain)
	forward, gradient, derivatives := answers(branched)
	if !sameBits(forward, wantForward) || !sameBits(gradient, wantGradient) {
		t.Errorf("the answers are\n%v and\n%v, not\n%v", forward, gradient, wantForward)
	}
	if !sameBits(derivatives, wantDerivatives) {
		t.Error("the derivatives have other bits")
	}
}
