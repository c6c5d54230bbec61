package relevance

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/ort"
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

// TestElementwise holds that the derivative of a function of single elements is that of
// its nodes one after the other: where they carry it back by quotients, signs, masks
// and powers, where one of them is read by nobody, and where the last one adds an axis.
func TestElementwise(t *testing.T) {
	r := library(t)
	x, u := []float32{-3.5, -1.5, -0.5, 0.25, 1, 4}, []float32{2, -1, 0.5, 3, -0.25, 1}
	for name, nodes := range map[string][][]string{
		"GELU":       {{"Div", "q", "x", "2"}, {"Erf", "e", "q"}, {"Add", "f", "e", "1"}, {"Mul", "g", "x", "f"}, {"Mul", "y", "g", "2"}},
		"SiLU":       {{"Neg", "n", "x"}, {"Exp", "e", "n"}, {"Add", "a", "1", "e"}, {"Div", "y", "x", "a"}},
		"hard swish": {{"Add", "a", "x", "2"}, {"Clip", "c", "a", "1", "4"}, {"Mul", "m", "x", "c"}, {"Div", "y", "m", "4"}},
		"polynomial": {{"Pow", "c", "x", "4"}, {"Sub", "s", "x", "c"}, {"Sub", "d", "1", "s"}, {"Mul", "m", "d", "x"}, {"Neg", "y", "m"}},
		"unread":     {{"Mul", "s", "x", "x"}, {"Sigmoid", "unread", "s"}, {"Mul", "m", "s", "2"}, {"Mul", "y", "m", "4"}},
		"an axis":    {{"Sigmoid", "s", "x"}, {"Mul", "m", "x", "s"}, {"Mul", "y", "m", "column"}},
	} {
		apart := Policy{Cases: []Case{{Match: Type("nothing"), Rule: Gradient}}}
		want, got := derivative(t, r, nodes, x, u, apart), derivative(t, r, nodes, x, u, Derivative())
		for i := range want {
			if !(math.Abs(float64(got[i]-want[i])) < 1e-5*max(1, math.Abs(float64(want[i])))) {
				t.Errorf("%s: at %g the derivative is %g, want %g", name, x[i], got[i], want[i])
			}
		}
	}
}

// derivative runs a function from x to y, of which u weighs the elements, and the way
// back.
func derivative(t *testing.T, r *ort.Runtime, nodes [][]string, x, u []float32, p Policy) []float32 {
	t.Helper()
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: Opset}}, Graph: &onnxpb.GraphProto{Name: "g"},
	}}
	row := onnx.Type{Elem: float, Shape: []int{len(x)}}
	types := map[string]onnx.Type{"x": row, "u": row}
	m.Proto.Graph.Initializer = []*onnxpb.TensorProto{
		onnx.FloatTensor("1", []float32{1}), onnx.FloatTensor("2", []float32{2}), onnx.FloatTensor("4", []float32{4}), onnx.FloatTensor("column", []float32{2}, 1, 1),
	}
	for _, n := range nodes {
		m.Proto.Graph.Node = append(m.Proto.Graph.Node, onnx.NewNode(n[1], n[0], n[2:], n[1:2]))
		types[n[1]] = row
		if slices.Contains(n, "column") {
			types[n[1]] = onnx.Type{Elem: float, Shape: []int{1, len(x)}}
			types["u"] = types[n[1]]
		}
	}
	g, err := onnx.NewGraph(m, types)
	if err != nil {
		t.Fatal(err)
	}
	arrived, err := Backward(g, map[Value]Value{"y": "u"}, []Value{"x"}, p)
	if err != nil {
		t.Fatal(err)
	}
	m.SetInputs(onnx.Value{Name: "x", Elem: float, Shape: row.Shape, Known: true}, onnx.Value{Name: "u", Elem: float, Shape: g.Shape("u"), Known: true})
	m.SetOutputs(onnx.Value{Name: arrived["x"], Elem: float})
	m.Prune()
	code, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.NewSession(code, []string{"x", "u"}, []string{arrived["x"]}, stages.Device{Class: "cpu", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var values []ort.Value
	for i, v := range [][]float32{x, u, nil} {
		f, err := ort.NewTensor[float32](r, g.Shape([]string{"x", "u", "x"}[i])...)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		copy(f.Data, v)
		values = append(values, f)
	}
	if err := s.Run(context.Background(), values[:2], values[2:]); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(values[2].(*ort.Tensor[float32]).Data)
}
