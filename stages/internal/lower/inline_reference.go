package lower

import (
	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// inlineReference puts the nodes of the reference's graph before the others, their values named as the twins
// are. Names of weights that the two graphs don't share are new; inputs keep theirs.
func (u *unit) inlineReference() error {
	g, other, twin := u.graph, u.reference.graph, u.twin
	mine := map[string]*onnxpb.TensorProto{}
	for _, w := range g.Proto.Graph.Initializer {
		mine[w.Name] = w
	}
	name := map[string]string{}
	for _, w := range other.Proto.Graph.Initializer {
		// Graphs of one model have most weights in the same memory.
		if m := mine[w.Name]; m == w || m != nil && proto.Equal(m, w) {
			continue
		}
		c := proto.Clone(w).(*onnxpb.TensorProto)
		c.Name = g.Fresh(w.Name + "/reference")
		name[w.Name] = c.Name
		g.Adopt(c, w.Name, other)
	}
	var nodes []*onnxpb.NodeProto
	for _, n := range other.Proto.Graph.Node {
		c := proto.Clone(n).(*onnxpb.NodeProto)
		onnx.Retake(c, name)
		for i, v := range n.Output {
			if v == "" {
				continue
			}
			if name[v] = twin[v]; twin[v] == "" {
				name[v] = g.Fresh(v + "/reference")
			}
			c.Output[i] = name[v]
		}
		c.Name = c.Output[0]
		nodes = append(nodes, c)
	}
	g.Proto.Graph.Node = append(nodes, g.Proto.Graph.Node...)
	return u.declare(u.reference.signature.Inputs)
}
