package lower

import (
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// splitReference moves the nodes that depend on the reference alone to the reference's program. What the
// remaining nodes read of them becomes an output of that program and an input of this one.
func (u *unit) splitReference() error {
	g, other := u.graph, u.reference.graph
	made := map[string]string{} // by name in g: the name in other
	for v, name := range u.twin {
		made[name] = v
	}
	var rest []*onnxpb.NodeProto
	for _, n := range g.Proto.Graph.Node {
		if !moves(g, n, made) {
			rest = append(rest, n)
			continue
		}
		c := proto.Clone(n).(*onnxpb.NodeProto)
		onnx.Retake(c, made)
		for _, v := range onnx.Taken(n) {
			if w := g.Weight(v); w != nil && made[v] == "" && other.Weight(v) == nil {
				other.Adopt(w, v, g)
			}
		}
		for _, v := range n.Output {
			made[v], other.Types[v] = v, g.Types[v]
		}
		other.Proto.Graph.Node = append(other.Proto.Graph.Node, c)
	}
	g.Proto.Graph.Node = rest

	var read []IO
	inputs := map[string]string{}
	end := other.Fragment()
	for _, n := range rest {
		for _, v := range onnx.Taken(n) {
			there, ok := made[v]
			if !ok {
				continue
			}
			if inputs[v] == "" {
				t := g.Types[v]
				if t.Elem != onnxpb.TensorProto_FLOAT {
					return fmt.Errorf("value %q: its value for the reference isn't a number", there)
				}
				in := IO{"reference_" + strconv.Itoa(len(read)), t.Shape}
				inputs[v] = in.Value()
				read = append(read, in)
				end.OpTo(in.Value(), "Identity", []string{there})
			}
		}
		onnx.Retake(n, inputs)
	}
	other.After(end)
	u.reference.signature.Outputs = slices.Clone(read)
	return u.declare(read)
}

// moves reports whether a node of g depends on nothing but a reference and makes floats of it, no more than
// it reads.
func moves(g *onnx.Graph, n *onnxpb.NodeProto, made map[string]string) bool {
	reads := false
	for _, v := range onnx.Taken(n) {
		_, there := made[v]
		reads = reads || there
		if !there && g.Weight(v) == nil {
			return false
		}
	}
	return reads && n.OpType != "Expand" && !slices.ContainsFunc(n.Output, func(v string) bool {
		return g.Types[v].Elem != onnxpb.TensorProto_FLOAT
	})
}
