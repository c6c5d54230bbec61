package relevance

import (
	"strings"
	"testing"
	"time"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// claimed returns a graph with declared shapes.
func claimed(t *testing.T, in []int, shapes map[string][]int, nodes ...*onnxpb.NodeProto) *onnx.Graph {
	t.Helper()
	m := &onnx.Model{Proto: &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Name: "g", Node: nodes}}}
	m.SetInputs(onnx.Value{Name: "x", Elem: float, Shape: in, Known: true})
	m.SetOutputs(onnx.Value{Name: nodes[len(nodes)-1].Output[0], Elem: float})
	types := map[string]onnx.Type{"x": {Elem: float, Shape: in}}
	for v, shape := range shapes {
		types[v] = onnx.Type{Elem: float, Shape: shape}
	}
	g, err := onnx.NewGraph(m, types)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestLargeConstants checks that declaring a large shape for a value doesn't create constants that exhaust
// the memory.
func TestLargeConstants(t *testing.T) {
	const large = 1 << 27
	axis := onnx.Attr{Name: "axis", Value: 1}
	pad := onnx.Attr{Name: "mode", Value: "edge"}
	for _, tt := range []struct {
		name      string
		from, to  []int
		op        string
		constants []*onnxpb.TensorProto
		attrs     []onnx.Attr
	}{
		{"ones", []int{2, large}, []int{2, large}, "Softmax", nil, []onnx.Attr{axis}},
		{"ones of two axes", []int{2, 1, 1}, []int{2, 1 << 14, 1 << 14}, "Expand",
			[]*onnxpb.TensorProto{onnx.IntTensor("c", []int64{2, 1 << 14, 1 << 14}, 3)}, nil},
		{"a band", []int{2, 1 << 14, 2, 2}, []int{2, 1 << 14, 2, 2}, "LRN", nil,
			[]onnx.Attr{{Name: "size", Value: 3}}},
		{"who copies whom", []int{2, 1 << 14}, []int{2, 1<<14 + 1}, "Pad",
			[]*onnxpb.TensorProto{onnx.IntTensor("c", []int64{0, 0, 0, 1}, 4)}, []onnx.Attr{pad}},
		{"where the largest is", []int{2, large}, []int{2, 1}, "ReduceMax", nil,
			[]onnx.Attr{{Name: "axes", Value: []int64{1}}}},
		{"what was picked", []int{2, large}, []int{2, 2}, "Gather",
			[]*onnxpb.TensorProto{onnx.IntTensor("c", []int64{0, 2}, 2)}, []onnx.Attr{axis}},
	} {
		in := []string{"x"}
		for _, c := range tt.constants {
			in = append(in, c.Name)
		}
		g := claimed(t, tt.from, map[string][]int{"y": tt.to, "s": tt.to},
			onnx.NewNode("large", tt.op, in, []string{"y"}, tt.attrs...))
		for _, c := range tt.constants {
			g.AddWeight(c)
		}
		_, err := Backward(g, map[Value]Value{"y": "s"}, []Value{"x"}, Policy{})
		if want := "node " + tt.op + ` "large"`; err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "is too large") {
			t.Errorf("%s: error %v, want one of %s", tt.name, err, want)
		}
	}
}

// TestManyLargeConstants checks that the limit applies to the constants of all nodes together.
func TestManyLargeConstants(t *testing.T) {
	b := newBuilder(claimed(t, []int{1}, nil, onnx.NewNode("", "Relu", []string{"x"}, []string{"y"})))
	defer func() {
		if recover() == nil || b.constBytes > maxConstBytes {
			t.Errorf("%d bytes were made", b.constBytes)
		}
	}()
	for k := range 8 {
		b.Ones(1<<24 + k)
	}
}

// TestBranchesThatMeet checks that branches that split and join many times are followed once, not once per
// path.
func TestBranchesThatMeet(t *testing.T) {
	hang := time.AfterFunc(time.Minute, func() { panic("every way is followed") })
	defer hang.Stop()
	for _, first := range []string{"Softmax", "Relu"} {
		shape := []int{2, 3, 5, 5}
		shapes := map[string][]int{"a": shape, "s": shape, "end": shape}
		nodes := []*onnxpb.NodeProto{onnx.NewNode("", first, []string{"x"}, []string{"a"})}
		at := "a"
		for range 100 {
			next := at + "'"
			shapes[next] = shape
			nodes = append(nodes,
				onnx.NewNode("", "Concat", []string{at, at}, []string{next},
					onnx.Attr{Name: "axis", Value: 1}))
			at = next
		}
		nodes = append(nodes, onnx.NewNode("", "Relu", []string{at}, []string{"end"}))
		g := claimed(t, shape, shapes, nodes...)
		Layers(g)
		if _, err := Attend(g); err == nil {
			t.Error("attention that nothing reads was found")
		}
		ChannelAxis(g, "a")
		for _, p := range []Policy{plainLRP(), TIBAV(), RAP().Policy(),
			AbsLRP{Variant: AbsLRPPaper, MaxPool: MaxPoolAuto, Ablation: AblationNone}.Policy()} {
			// The shapes are invalid, so an error is fine: the call must return.
			_, _ = Backward(g.Clone(), map[Value]Value{"end": "s"}, []Value{"x"}, p)
		}
	}
}
