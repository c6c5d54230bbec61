package program

import (
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// divide moves the nodes of g that depend on a reference alone to the graph that makes
// it. twin has the names in g of what other makes of the reference. It returns what is
// left to feed to g, which other has under the same names, and has g read it so.
func divide(g, other *onnx.Graph, twin map[string]string) ([]feed, error) {
	made := map[string]string{} // by name in g: the name in other
	for v, name := range twin {
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

	var feeds []feed
	fed := map[string]string{}
	end := other.Fragment()
	for _, n := range rest {
		for _, v := range onnx.Taken(n) {
			there, ok := made[v]
			if !ok {
				continue
			}
			if fed[v] == "" {
				t := g.Types[v]
				if t.Elem != onnxpb.TensorProto_FLOAT {
					return nil, fmt.Errorf("value %q: what it is for the reference is no number", there)
				}
				name := "reference_" + strconv.Itoa(len(feeds))
				fed[v] = "runexp_" + name
				feeds = append(feeds, feed{name, t.Shape})
				end.OpTo(fed[v], "Identity", []string{there})
			}
		}
		onnx.Retake(n, fed)
	}
	other.After(end)
	return feeds, nil
}

// moves reports whether a node of g depends on nothing but a reference, makes numbers
// of it, and no more than there are.
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
