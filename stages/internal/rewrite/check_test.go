package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

func chain(names ...string) []*onnxpb.NodeProto {
	var out []*onnxpb.NodeProto
	for _, n := range names { // "b=a" makes b of a
		to, from, _ := strings.Cut(n, "=")
		out = append(out, onnx.NewNode(to, "Relu", strings.Split(from, ","), []string{to}))
	}
	return out
}

func TestOrder(t *testing.T) {
	for _, tt := range []struct{ in, want []string }{
		{[]string{"a=x", "b=a", "c=a"}, []string{"a", "b", "c"}},
		{[]string{"c=b,x", "d=x", "b=a", "a=x"}, []string{"a", "b", "c", "d"}},
	} {
		m := model(17, chain(tt.in...))
		if err := TopologicalOrder(m); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range m.Proto.Graph.Node {
			got = append(got, n.Name)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Error(d)
		}
	}
}

func TestOrderRefuses(t *testing.T) {
	weight := func() *onnxpb.TensorProto { return ints("w", 1) }
	cut := onnx.NewNode("a", "SplitToSequence", []string{"x", "w"}, []string{"a"})
	says := &onnxpb.NodeProto{OpType: "Constant", Output: []string{"w"},
		Attribute: []*onnxpb.AttributeProto{{Name: "value", Type: onnxpb.AttributeProto_TENSOR,
			T: onnx.IntTensor("", []int64{-1})}}}
	branch := &onnxpb.NodeProto{OpType: "If", Input: []string{"x"}, Output: []string{"b"},
		Attribute: []*onnxpb.AttributeProto{
			{Name: "then_branch", Type: onnxpb.AttributeProto_GRAPH,
				G: &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{says, cut}}}}}
	tests := []struct {
		name string
		m    *onnx.Model
		want string
	}{
		{"a cycle", model(17, chain("a=x", "b=a,d", "c=b", "d=c")),
			`node Relu "c" takes "b", which depends on its own output`},
		{"a node that takes its own", model(17, chain("a=a")),
			`node Relu "a" takes "a", which depends on its own output`},
		{"nothing made", model(17, chain("a=x", "b=gone")),
			`node Relu "b" takes "gone", which nothing makes`},
		{"made twice", model(17, chain("a=x", "a=x")), `node Relu "a" makes "a", which is made already`},
		{"made over the input", model(17, chain("x=x")), `node Relu "x" makes "x", which is made already`},
		{"two weights", model(17, chain("a=w"), weight(), weight()), `two weights called "w"`},
		{"a weight of one dimension", model(17, []*onnxpb.NodeProto{onnx.NewNode("a", "ConvTranspose",
			[]string{"x", "w"}, []string{"a"})}, weight()),
			`node ConvTranspose "a": its weights have 1 dimensions`},
		{"parts of nothing", model(17, []*onnxpb.NodeProto{cut}, onnx.IntTensor("w", []int64{0})),
			`node SplitToSequence "a" cuts into parts of 0`},
		{"parts of less than nothing, in a branch", model(17, []*onnxpb.NodeProto{branch}),
			`node SplitToSequence "a" cuts into parts of -1`},
		{"parts that are too many", model(21, []*onnxpb.NodeProto{onnx.NewNode("a", "Split", []string{"x"},
			[]string{"a", "b"}, onnx.Attr{Name: "num_outputs", Value: 3})}),
			`node Split "a" has 2 outputs, and its num_outputs is 3`},
		{"a node without outputs", model(17, []*onnxpb.NodeProto{{OpType: "Relu", Input: []string{"x"}}}),
			"node Relu without outputs"},
	}
	for _, tt := range tests {
		if err := TopologicalOrder(tt.m); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
	m := model(17, chain("a=x"))
	m.Proto.Graph.Output = []*onnxpb.ValueInfoProto{{Name: "gone"}}
	if err := TopologicalOrder(m); err == nil ||
		!strings.Contains(err.Error(), `nothing makes the output "gone"`) {
		t.Errorf("a missing output: %v", err)
	}
	m = model(17, chain("a=y"))
	m.SetInputs(onnx.Value{Name: "y", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{1 << 62, 1 << 62},
		Known: true})
	if err := TopologicalOrder(m); err == nil ||
		!strings.Contains(err.Error(), `"y" has the impossible shape`) {
		t.Errorf("a huge input: %v", err)
	}
}

// TestWindows holds that windows which reach nowhere, or farther than any image, are refused by the name of
// their node.
func TestWindows(t *testing.T) {
	for _, tt := range []struct {
		name string
		v    []int64
		ok   bool
	}{
		{"kernel_shape", []int64{3, 3}, true},
		{"kernel_shape", []int64{3, 0}, false},
		{"kernel_shape", []int64{3, -1 << 62}, false},
		{"strides", []int64{0, 1}, false},
		{"dilations", []int64{1, 1 << 40}, false},
		{"pads", []int64{1, 0, -1, 0}, true},
		{"pads", []int64{1 << 62, 0, 0, 0}, false},
		{"output_padding", []int64{-1}, false},
		{"output_shape", []int64{224, 224}, true},
	} {
		err := TopologicalOrder(model(17, []*onnxpb.NodeProto{onnx.NewNode("c", "Conv", []string{"x"},
			[]string{"y"}, onnx.Attr{Name: tt.name, Value: tt.v})}))
		if tt.ok != (err == nil) || err != nil &&
			!strings.Contains(err.Error(), `node Conv "c": its `+tt.name) {
			t.Errorf("%s of %v: error %v", tt.name, tt.v, err)
		}
	}
}

// TestOrderLooksInside holds that what a graph inside a node takes from outside counts, and what it makes
// itself doesn't.
func TestOrderLooksInside(t *testing.T) {
	loop := onnx.NewNode("loop", "If", []string{"x"}, []string{"y"})
	inner := &onnxpb.GraphProto{Node: chain("own=outer", "end=own")}
	loop.Attribute = []*onnxpb.AttributeProto{{Name: "then_branch", Type: onnxpb.AttributeProto_GRAPH,
		G: inner}}
	m := model(17, append([]*onnxpb.NodeProto{loop}, chain("outer=x")...))
	if err := TopologicalOrder(m); err != nil {
		t.Fatal(err)
	}
	if got := m.Proto.Graph.Node[0].Name; got != "outer" {
		t.Errorf("%s comes first", got)
	}
}

// TestOrderOfALongChain holds that a long chain the wrong way round is no trouble.
func TestOrderOfALongChain(t *testing.T) {
	const n = 200000
	nodes := make([]*onnxpb.NodeProto, n)
	name := func(i int) string { return fmt.Sprint("v", i) }
	for i := range nodes {
		from := "x"
		if i > 0 {
			from = name(i - 1)
		}
		nodes[n-1-i] = onnx.NewNode("", "Relu", []string{from}, []string{name(i)})
	}
	m := model(17, nodes)
	if err := TopologicalOrder(m); err != nil {
		t.Fatal(err)
	}
	if got := m.Proto.Graph.Node[0].Output[0]; got != name(0) {
		t.Errorf("%s comes first", got)
	}
}
