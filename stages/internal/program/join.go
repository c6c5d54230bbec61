package program

import (
	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// join puts the nodes of another graph before those of g, what they make named as twin
// says. Names of weights that the two don't share are new; inputs keep theirs.
func join(g, other *onnx.Graph, twin map[string]string) {
	mine := map[string]*onnxpb.TensorProto{}
	for _, w := range g.Proto.Graph.Initializer {
		mine[w.Name] = w
	}
	name := map[string]string{}
	for _, w := range other.Proto.Graph.Initializer {
		// Graphs of one net have most weights in the same memory.
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
}
