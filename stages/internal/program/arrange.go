package program

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// Arrange has a value of the graph with its channels where all that look at layers
// expect them: feature maps [B,C,h,w], tokens [B,T,C]. Nets like Swin keep feature
// maps the other way; their value moves to another name, and all that read it read
// it turned back.
func Arrange(g *onnx.Graph, layer string) {
	perm := turned(g, layer)
	if perm == nil {
		return
	}
	i := slices.IndexFunc(g.Proto.Graph.Node, func(n *onnxpb.NodeProto) bool { return slices.Contains(n.Output, layer) })
	if i < 0 {
		return
	}
	shape := g.Shape(layer)
	there, back := make([]int, len(perm)), make([]int64, len(perm))
	long := make([]int64, len(perm))
	for k, p := range perm {
		there[k], back[p], long[k] = shape[p], int64(k), int64(p)
	}
	own, again := g.Fresh(layer+"/own"), g.Fresh(layer+"/again")
	g.Types[own], g.Types[again] = g.Types[layer], g.Types[layer]
	g.Types[layer] = onnx.Type{Elem: g.Types[own].Elem, Shape: there}
	nodes := g.Proto.Graph.Node
	for _, n := range nodes {
		for k, v := range n.Input {
			if v == layer {
				n.Input[k] = again
			}
		}
	}
	made := nodes[i]
	made.Output[slices.Index(made.Output, layer)] = own
	g.Proto.Graph.Node = slices.Insert(nodes, i+1,
		onnx.NewNode(layer+"/turned", "Transpose", []string{own}, []string{layer}, onnx.Attr{Name: "perm", Value: long}),
		onnx.NewNode(again, "Transpose", []string{layer}, []string{again}, onnx.Attr{Name: "perm", Value: back}))
}

// turned returns how a value's axes have to be permuted for its channels to be
// where they are expected, nil if they are.
func turned(g *onnx.Graph, layer string) []int {
	axis := relevance.ChannelAxis(g, layer)
	switch rank := len(g.Shape(layer)); {
	case rank == 4 && axis == 3:
		return []int{0, 3, 1, 2}
	case rank == 3 && axis == 1:
		return []int{0, 2, 1}
	}
	return nil
}
