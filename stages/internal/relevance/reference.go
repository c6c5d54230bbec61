package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// ReferenceNames returns a name for the value at a reference input of each value of g that depends on input,
// for rules that compare the two. The names get the types of the values in other: the same graph, or the same
// for a batch of one. It returns false if values of that batch don't broadcast to those of g, as when heads
// or windows share an axis with the images. The caller must feed the names that are read.
func ReferenceNames(g, other *onnx.Graph, input Value) (map[Value]Value, bool) {
	same := func(n, m *onnxNode) bool {
		return n.OpType == m.OpType && slices.Equal(n.Input, m.Input) && slices.Equal(n.Output, m.Output)
	}
	if !slices.EqualFunc(g.Proto.Graph.Node, other.Proto.Graph.Node, same) {
		return nil, false
	}
	var nodes []onnx.Node
	for _, n := range g.Proto.Graph.Node {
		nodes = append(nodes, onnx.Node{NodeProto: n})
	}
	depends := reaches(nodes, []Value{input})
	names := map[Value]Value{}
	add := func(v Value) bool {
		if !depends[v] {
			return true
		}
		t := other.Types[v]
		if !slices.EqualFunc(t.Shape, g.Shape(v), func(d, all int) bool { return d == all || d == 1 }) {
			return false
		}
		names[v] = g.Fresh(v + "/reference")
		g.Types[names[v]] = t
		return true
	}
	if !add(input) {
		return nil, false
	}
	for _, n := range nodes {
		for _, v := range n.Output {
			if !add(v) {
				return nil, false
			}
		}
	}
	return names, true
}
