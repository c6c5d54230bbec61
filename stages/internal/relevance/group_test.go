package relevance

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/ort"
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
		onnx.FloatTensor("root", []float32{1.4}), onnx.FloatTensor("one", []float32{1}),
		onnx.FloatTensor("half", []float32{0.5}),
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

// TestGroup checks the groups that rules see, their inputs, and that values of interest stay visible.
func TestGroup(t *testing.T) {
	type seen struct {
		Type   string
		Inputs []Value
	}
	all := []seen{{"Linear", []Value{"x", "W", "b"}}, {"Elementwise", []Value{"z"}},
		{"Add", []Value{"gelu", "x"}}}
	for _, tt := range []struct {
		wrt  Value
		want []seen
	}{
		{"x", all},
		{"z", all},
		{"product", []seen{{"Linear", []Value{"x", "W"}}, {"Add", []Value{"b", "product"}}, all[1], all[2]}},
		{"gate", []seen{all[0], {"Elementwise", []Value{"z"}}, {"Mul", []Value{"gate", "half"}}, all[2]}},
		{"sum",
			[]seen{all[0], {"Div", []Value{"z", "root"}}, {"Erf", []Value{"quotient"}},
				{"Add", []Value{"erf", "one"}},
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

// TestGroupCaptured checks that values captured by an If body stay visible: otherwise relevance wouldn't
// reach the If.
func TestGroupCaptured(t *testing.T) {
	b := newBuilder(dense(t))
	for _, n := range b.g.Proto.Graph.Node {
		b.model = append(b.model, onnx.Node{NodeProto: n})
	}
	b.model = append(b.model,
		onnx.Node{NodeProto: &onnxNode{OpType: "If", Input: []Value{"dark"}, Output: []Value{"other"},
			Attribute: []*onnxpb.AttributeProto{
				{Name: "then_branch", Type: onnxpb.AttributeProto_GRAPH,
					G: &onnxpb.GraphProto{Node: []*onnxNode{onnx.NewNode("", "Neg", []Value{"sum"},
						[]Value{"value"})}}}}}})
	b.group(map[Value]Value{"y": "seed"}, []Value{"x"}, false)
	if i := slices.IndexFunc(b.model, func(n onnx.Node) bool { return n.OpType == "Elementwise" }); i >= 0 {
		t.Errorf("%q hides what the If takes", b.model[i].Output)
	}
}

// TestCopyWithoutBias checks that the copy of a Linear without its bias is the product alone.
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

// TestElementwise checks that the derivative of an element-wise group equals that of its nodes, for
// quotients, signs, masks and powers, with a node without readers, and with a last node that adds an axis.
func TestElementwise(t *testing.T) {
	apart := Policy{Cases: []Case{{Match: Type("nothing"), Rule: Gradient}}}
	for name, nodes := range map[string][][]string{
		"GELU": {{"Div", "q", "x", "2"}, {"Erf", "e", "q"}, {"Add", "f", "e", "1"},
			{"Mul", "g", "x", "f"}, {"Mul", "y", "g", "2"}},
		"SiLU": {{"Neg", "n", "x"}, {"Exp", "e", "n"}, {"Add", "a", "1", "e"}, {"Div", "y", "x", "a"}},
		"hard swish": {{"Add", "a", "x", "2"}, {"Clip", "c", "a", "1", "2"}, {"Mul", "m", "x", "c"},
			{"Div", "y", "m", "2"}},
		"polynomial": {{"Pow", "c", "x", "2"}, {"Sub", "s", "x", "c"}, {"Sub", "d", "1", "s"},
			{"Mul", "m", "d", "x"}, {"Neg", "y", "m"}},
		"unread": {{"Mul", "s", "x", "x"}, {"Sigmoid", "unread", "s"}, {"Mul", "m", "s", "2"},
			{"Mul", "y", "m", "2"}},
		"an axis": {{"Sigmoid", "s", "x"}, {"Mul", "m", "x", "s"}, {"Mul", "y", "m", "column"}},
	} {
		shapes := map[string][]int{"x": {16}}
		if name == "an axis" {
			shapes["y"] = []int{1, 16}
		}
		_, want := derivative(t, nodes, shapes, apart)
		_, got := derivative(t, nodes, shapes, Derivative())
		near(t, name, got, want)
	}
}

// derivative runs the backward pass of a function of x from random cotangents at y. Values have x's shape
// unless shapes differs. It also returns the graph.
func derivative(t *testing.T, nodes [][]string, shapes map[string][]int, p Policy) (*onnx.Graph, []float32) {
	t.Helper()
	r := library(t)
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: Opset}},
		Graph: &onnxpb.GraphProto{Name: "g"},
	}}
	m.Proto.Graph.Initializer = []*onnxpb.TensorProto{
		onnx.FloatTensor("1", []float32{1}), onnx.FloatTensor("2", []float32{2}),
		onnx.FloatTensor("column", []float32{2}, 1, 1),
	}
	types := map[string]onnx.Type{}
	for v, s := range shapes {
		types[v] = onnx.Type{Elem: float, Shape: s}
	}
	for _, n := range nodes {
		m.Proto.Graph.Node = append(m.Proto.Graph.Node, onnx.NewNode(n[1], n[0], n[2:], n[1:2]))
		if _, ok := shapes[n[1]]; !ok {
			types[n[1]] = types["x"]
		}
	}
	types["u"] = types["y"]
	g, err := onnx.NewGraph(m, types)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := Backward(g, map[Value]Value{"y": "u"}, []Value{"x"}, p)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var in []ort.Value
	var inputs []onnx.Value
	tensor := func(shape []int) *ort.Tensor[float32] {
		f, err := ort.NewTensor[float32](r, shape...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	for i, v := range []string{"x", "u", "v", "w"} {
		shape := types[v].Shape
		if shape == nil {
			continue
		}
		f := tensor(shape)
		copy(f.Data, noise(rand.New(rand.NewPCG(uint64(i), 1)), size(shape)))
		names, in, inputs = append(names, v), append(in, f), append(inputs,
			onnx.Value{Name: v, Elem: float, Shape: shape, Known: true})
	}
	m.SetInputs(inputs...)
	m.SetOutputs(onnx.Value{Name: rel["x"], Elem: float})
	m.Prune()
	code, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.NewSession(code, names, []string{rel["x"]}, stages.Device{Class: "cpu", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	back := tensor(shapes["x"])
	if err := s.Run(context.Background(), in, []ort.Value{back}); err != nil {
		t.Fatal(err)
	}
	return g, slices.Clone(back.Data)
}

// near compares numbers.
func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) < 1e-5*max(1, math.Abs(float64(want[i])))) {
			t.Errorf("%s: derivative %d is %g, want %g", what, i, got[i], want[i])
		}
	}
}

// TestWeighted checks that the derivative of an attention's softmax equals that of any softmax, and that its
// sum is over a head's channels if they are fewer than the tokens, whatever else reads the softmax.
func TestWeighted(t *testing.T) {
	const tokens = 5
	// With this rule the softmax doesn't detect its readers.
	hidden := Policy{Cases: []Case{{Match: Type("Softmax"),
		Rule: func(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
			return op.VJP(b, n, []Value{b.Unary("Identity", r[0])})
		}}}}
	attention := [][]string{{"Softmax", "p", "x"}, {"MatMul", "other", "p", "w"}, {"MatMul", "y", "p", "v"}}
	for channels, summed := range map[int]int{3: 3, 7: tokens} {
		values := []int{2, tokens, channels}
		shapes := map[string][]int{"x": {2, tokens, tokens}, "v": values, "w": values, "other": values,
			"y": values}
		_, want := derivative(t, attention, shapes, hidden)
		g, got := derivative(t, attention, shapes, Derivative())
		near(t, fmt.Sprintf("%d channels", channels), got, want)
		sums := map[int]int{}
		for _, n := range g.Proto.Graph.Node {
			if n.OpType == "MatMul" && slices.Equal(g.Shape(n.Input[1])[1:], []int{1}) {
				sums[g.Shape(n.Input[1])[0]]++
			}
		}
		if d := cmp.Diff(map[int]int{summed: 1}, sums); d != "" {
			t.Errorf("%d channels: sums, by what they are over: %s", channels, d)
		}
	}
}
