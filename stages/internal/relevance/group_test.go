package relevance

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// dense returns the graph y = gelu(x·W + b) + x as exporters write it.
func dense(t *testing.T) *onnx.Graph {
	t.Helper()
	m := &onnx.Model{Proto: &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Name: "g"}}}
	shape := []int{2, 3}
	m.SetInputs(onnx.Value{Name: "x", Elem: float, Shape: shape, Known: true})
	m.SetOutputs(onnx.Value{Name: "y", Elem: float})
	m.Proto.Graph.Initializer = []*onnxpb.TensorProto{
		onnx.FloatTensor("W", make([]float32, 9), 3, 3), onnx.FloatTensor("b", make([]float32, 3), 3),
		onnx.FloatTensor("root", []float32{1.4}), onnx.FloatTensor("one", []float32{1}), onnx.FloatTensor("half", []float32{0.5}),
	}
	types := map[string]onnx.Type{"x": {Elem: float, Shape: shape}, "seed": {Elem: float, Shape: shape}}
	for _, n := range [][]string{
		{"MatMul", "product", "x", "W"}, {"Add", "z", "b", "product"},
		{"Div", "quotient", "z", "root"}, {"Erf", "erf", "quotient"}, {"Add", "sum", "erf", "one"},
		{"Mul", "gate", "z", "sum"}, {"Mul", "gelu", "gate", "half"}, {"Add", "y", "gelu", "x"},
	} {
		m.Proto.Graph.Node = append(m.Proto.Graph.Node, onnx.NewNode(n[1], n[0], n[2:], n[1:2]))
		types[n[1]] = onnx.Type{Elem: float, Shape: shape}
	}
	g, err := onnx.NewGraph(m, types)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestGroup holds which nodes rules see as one, what its inputs are, and that a value
// somebody wants to see isn't hidden in a group.
func TestGroup(t *testing.T) {
	type seen struct {
		Type   string
		Inputs []Value
	}
	all := []seen{{"Linear", []Value{"x", "W", "b"}}, {"Elementwise", []Value{"z"}}, {"Add", []Value{"gelu", "x"}}}
	for _, tt := range []struct {
		wrt  Value
		want []seen
	}{
		{"x", all},
		{"z", all},
		{"product", []seen{{"Linear", []Value{"x", "W"}}, {"Add", []Value{"b", "product"}}, all[1], all[2]}},
		{"gate", []seen{all[0], {"Elementwise", []Value{"z"}}, {"Mul", []Value{"gate", "half"}}, all[2]}},
		{"sum", []seen{all[0], {"Div", []Value{"z", "root"}}, {"Erf", []Value{"quotient"}}, {"Add", []Value{"erf", "one"}},
			{"Mul", []Value{"z", "sum"}}, {"Mul", []Value{"gate", "half"}}, all[2]}},
	} {
		var got []seen
		b := newBuilder(dense(t))
		for _, n := range b.g.Proto.Graph.Node {
			b.model = append(b.model, onnx.Node{NodeProto: n})
		}
		b.group(map[Value]Value{"y": "seed"}, []Value{tt.wrt}, true)
		for _, n := range b.model {
			got = append(got, seen{n.OpType, n.Input})
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("with respect to %s: %s", tt.wrt, d)
		}
	}
}

// TestCopyWithoutBias holds that the copy of a Linear without bias is its product
// alone.
func TestCopyWithoutBias(t *testing.T) {
	b := newBuilder(dense(t))
	for _, n := range b.g.Proto.Graph.Node {
		b.model = append(b.model, onnx.Node{NodeProto: n})
	}
	b.group(nil, nil, true)
	b.flows = map[Value]bool{}
	b.Copy(b.model[0], map[int]Value{2: ""})
	if len(b.nodes) != 1 || b.nodes[0].OpType != "MatMul" {
		t.Errorf("the copy is %v", b.nodes)
	}
}
