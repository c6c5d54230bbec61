package lower

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// explain emits the derivative of the explained expression with respect to the answer, which says how much
// each element of the answer counts, as the input targets does of classes. Its nodes are hidden until
// [unit.show], because rules examine the readers of a value, and see the model alone.
func (u *unit) explain() error {
	if u.head == nil {
		return nil
	}
	g := u.graph
	answer := []int{u.batch, u.Classes}
	g.Types[Answer] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: answer}
	own := len(g.Proto.Graph.Node)
	f := g.Fragment()
	value := u.head.Emit(g, f, Answer, prefix+"targets")
	g.After(f)
	results, err := u.without().Backward(g, map[string]string{value: u.ones()}, []string{Answer},
		relevance.Derivative())
	if err != nil {
		return err
	}
	u.counts = results[Answer]
	nodes := g.Proto.Graph.Node
	g.Proto.Graph.Node, u.hidden = slices.Clip(nodes[:own]), slices.Clone(nodes[own:])
	return nil
}

// show puts the nodes that explain hid behind the first ones of the graph, which the model has.
func (u *unit) show(own int) {
	g := u.graph.Proto.Graph
	g.Node = slices.Concat(g.Node[:own], u.hidden, g.Node[own:])
	u.hidden = nil
}
