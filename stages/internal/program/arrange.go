package program

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// Arrange has a value of the graph with its channels where all that look at layers
// expect them: feature maps [B,C,h,w], tokens [B,T,C], and tokens in the order of the
// image's rows. Nets like Swin keep feature maps the other way, and Hiera sorts its
// tokens; their value moves to another name, and all that read it read it turned back.
func Arrange(g *onnx.Graph, layer string) {
	perm, order := turned(g, layer), []int(nil)
	if rank := len(g.Shape(layer)); rank == 3 {
		order = relevance.TokenOrder(g, layer, 3-relevance.ChannelAxis(g, layer))
	}
	i := slices.IndexFunc(g.Proto.Graph.Node, func(n *onnxpb.NodeProto) bool { return slices.Contains(n.Output, layer) })
	if i < 0 || perm == nil && order == nil {
		return
	}
	own := g.Fresh(layer + "/own")
	g.Types[own] = g.Types[layer]
	a := arrangement{g: g, elem: g.Types[own].Elem}
	there := own
	if perm != nil {
		there = a.transposed(there, g.Fresh(layer+"/turned"), perm)
	}
	if order != nil {
		there = a.sorted(there, g.Fresh(layer+"/sorted"), order)
	}
	// The last one has the layer's name.
	a.nodes[len(a.nodes)-1].Output[0] = layer
	g.Types[layer] = g.Types[there]
	back := layer
	if order != nil {
		back = a.sorted(back, g.Fresh(layer+"/unsorted"), inverse(order))
	}
	if perm != nil {
		back = a.transposed(back, g.Fresh(layer+"/again"), inverse(perm))
	}
	nodes := g.Proto.Graph.Node
	for _, n := range nodes {
		onnx.Retake(n, map[string]string{layer: back})
	}
	made := nodes[i]
	made.Output[slices.Index(made.Output, layer)] = own
	g.Proto.Graph.Node = slices.Insert(nodes, i+1, a.nodes...)
}

// An arrangement is the nodes that turn a value and turn it back.
type arrangement struct {
	g     *onnx.Graph
	elem  onnxpb.TensorProto_DataType
	nodes []*onnxpb.NodeProto
}

func (a *arrangement) transposed(v, to string, perm []int) string {
	from := a.g.Shape(v)
	shape, long := make([]int, len(perm)), make([]int64, len(perm))
	for k, p := range perm {
		shape[k], long[k] = from[p], int64(p)
	}
	a.g.Types[to] = onnx.Type{Elem: a.elem, Shape: shape}
	a.nodes = append(a.nodes, onnx.NewNode(to, "Transpose", []string{v}, []string{to}, onnx.Attr{Name: "perm", Value: long}))
	return to
}

func (a *arrangement) sorted(v, to string, order []int) string {
	long := make([]int64, len(order))
	for k, p := range order {
		long[k] = int64(p)
	}
	name := a.g.Fresh(to + "/order")
	a.g.AddWeight(onnx.IntTensor(name, long, len(long)))
	a.g.Types[to] = a.g.Types[v]
	a.nodes = append(a.nodes, onnx.NewNode(to, "Gather", []string{v, name}, []string{to}, onnx.Attr{Name: "axis", Value: 1}))
	return to
}

func inverse(perm []int) []int {
	out := make([]int, len(perm))
	for k, p := range perm {
		out[p] = k
	}
	return out
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
