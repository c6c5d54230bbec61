package program

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// A file's values are more than its graph's: simplification removes those that copy another, and those inside
// what it fuses.

// copies are the operators that return what they take, in evaluation mode.
var copies = []string{"Identity", "Dropout"}

// replaced looks up a value of the model's file that its simplified graph doesn't have: same is the value of
// the graph that is equal to it, "" for none; near says which values of the graph are next to it, "" for a
// name that isn't in the file either.
func (n *Net) replaced(g *onnx.Graph, layer string) (same, near string) {
	b, err := n.onnx()
	if err != nil || n.rewrite != nil {
		return "", ""
	}
	m, err := onnx.Parse(b)
	if err != nil {
		return "", ""
	}
	f := fileGraph{makes: map[string]onnx.Node{}, reads: map[string][]onnx.Node{}}
	for _, p := range m.Proto.Graph.Node {
		node := onnx.Node{NodeProto: p}
		for _, v := range p.Output {
			f.makes[v] = node
		}
		for _, v := range onnx.Taken(p) {
			f.reads[v] = append(f.reads[v], node)
		}
	}
	if _, ok := f.makes[layer]; !ok {
		return "", ""
	}
	before, above := f.nearest(g, layer, f.producer, func(n onnx.Node) []string { return n.Input })
	if before != "" {
		return before, ""
	}
	after, below := f.nearest(g, layer, f.readers, func(n onnx.Node) []string { return n.Output })
	if after != "" {
		return after, ""
	}
	near = "simplification removed it"
	for _, side := range []struct{ where, name string }{{"before it", above}, {"behind it", below}} {
		if side.name != "" {
			near += fmt.Sprintf("; the next value %s is %q", side.where, side.name)
		}
	}
	return "", near
}

// A fileGraph is the nodes of a model's file by the values that they make and read.
type fileGraph struct {
	makes map[string]onnx.Node
	reads map[string][]onnx.Node
}

func (f fileGraph) producer(v string) []onnx.Node {
	if node, ok := f.makes[v]; ok {
		return []onnx.Node{node}
	}
	return nil
}

func (f fileGraph) readers(v string) []onnx.Node { return f.reads[v] }

// nearest searches the values before or after a layer, breadth first, for one that the simplified graph has:
// next returns the nodes next to a value, and of the values on their other side. The value is the same if all
// nodes between are copies.
func (f fileGraph) nearest(g *onnx.Graph, layer string, next func(v string) []onnx.Node,
	of func(onnx.Node) []string) (same, near string) {
	queue, seen := []string{layer}, map[string]bool{layer: true}
	equal := map[string]bool{layer: true}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		if v != layer && g.Weight(v) == nil && g.Shape(v) != nil {
			if equal[v] {
				return v, v
			}
			return "", v
		}
		for _, node := range next(v) {
			for i, w := range of(node) {
				if w != "" && !seen[w] {
					seen[w] = true
					equal[w] = equal[v] && i == 0 && slices.Contains(copies, node.OpType)
					queue = append(queue, w)
				}
			}
		}
	}
	return "", ""
}
