package lower

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// channelsFirst puts the channels of each question's layer first, and records the shapes around the
// question.
func (u *unit) channelsFirst() error {
	for _, q := range u.questions() {
		s := Shapes{Batch: u.batch, Image: []int{u.Channels, u.Height, u.Width}}
		wrt := u.Input
		if s.Layer = s.Image; q.Layer != "" {
			ChannelsFirst(u.graph, q.Layer)
			shape := u.graph.Shape(q.Layer)
			if len(shape) == 0 || shape[0] != u.batch {
				return noLayer(q.Layer, "no value of the model's graph, or none with a row for every image")
			}
			s.Layer, wrt = shape[1:], q.Layer
		}
		u.shapes, u.wrt = append(u.shapes, s), append(u.wrt, wrt)
	}
	return nil
}

// ChannelsFirst gives a value of the graph the layout of layers: feature maps [B,C,h,w], tokens [B,T,C] in
// the order of the image's rows. Models like Swin have channels last, and Hiera sorts its tokens; such a
// value is renamed, and the nodes that read it read its inverse transposition. Tokens of texts are in order.
// Of a signal a layer [B,C,T] or [B,T,C] becomes feature maps of one row, [B,C,1,T].
func ChannelsFirst(g *onnx.Graph, layer string) {
	if g.Root != "" {
		return
	}
	rank, axis := len(g.Shape(layer)), relevance.ChannelAxis(g, layer)
	signal := rank == 3 && relevance.Signal(g)
	perm, order := toChannelsFirst(rank, axis, signal), []int(nil)
	if rank == 3 && !signal {
		order = relevance.TokenOrder(g, layer, 3-axis)
	}
	i := slices.IndexFunc(g.Proto.Graph.Node,
		func(n *onnxpb.NodeProto) bool { return slices.Contains(n.Output, layer) })
	if i < 0 || perm == nil && order == nil && !signal {
		return
	}
	own := g.Fresh(layer + "/own")
	g.Types[own] = g.Types[layer]
	a := relayout{g: g, elem: g.Types[own].Elem}
	current := own
	if perm != nil {
		current = a.transposed(current, g.Fresh(layer+"/turned"), perm)
	}
	if order != nil {
		current = a.sorted(current, g.Fresh(layer+"/sorted"), order)
	}
	flat := current
	if signal {
		current = a.reshaped(current, g.Fresh(layer+"/row"), row(g.Shape(current)))
	}
	// The last one has the layer's name.
	a.nodes[len(a.nodes)-1].Output[0] = layer
	g.Types[layer] = g.Types[current]
	back := layer
	if signal {
		back = a.reshaped(back, g.Fresh(layer+"/flat"), g.Shape(flat))
	}
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

// A relayout is the nodes that transpose and sort a value, and their inverses.
type relayout struct {
	g     *onnx.Graph
	elem  onnxpb.TensorProto_DataType
	nodes []*onnxpb.NodeProto
}

func (a *relayout) transposed(v, to string, perm []int) string {
	from := a.g.Shape(v)
	shape := make([]int, len(perm))
	for k, p := range perm {
		shape[k] = from[p]
	}
	a.g.Types[to] = onnx.Type{Elem: a.elem, Shape: shape}
	a.nodes = append(a.nodes, onnx.NewNode(to, "Transpose", []string{v}, []string{to},
		onnx.Attr{Name: "perm", Value: int64s(perm)}))
	return to
}

func (a *relayout) reshaped(v, to string, shape []int) string {
	name := a.g.Fresh(to + "/shape")
	a.g.AddWeight(onnx.IntTensor(name, shape, len(shape)))
	a.g.Types[to] = onnx.Type{Elem: a.elem, Shape: shape}
	a.nodes = append(a.nodes, onnx.NewNode(to, "Reshape", []string{v, name}, []string{to}))
	return to
}

func (a *relayout) sorted(v, to string, order []int) string {
	name := a.g.Fresh(to + "/order")
	a.g.AddWeight(onnx.IntTensor(name, order, len(order)))
	a.g.Types[to] = a.g.Types[v]
	a.nodes = append(a.nodes,
		onnx.NewNode(to, "Gather", []string{v, name}, []string{to}, onnx.Attr{Name: "axis", Value: 1}))
	return to
}

func inverse(perm []int) []int {
	out := make([]int, len(perm))
	for k, p := range perm {
		out[p] = k
	}
	return out
}

// row returns the shape of feature maps of one row, given [B,C,T].
func row(shape []int) []int { return []int{shape[0], shape[1], 1, shape[2]} }

// toChannelsFirst returns the permutation of a value's axes that puts its channels first, nil if they are.
// Tokens have them last, those of a signal don't.
func toChannelsFirst(rank, axis int, signal bool) []int {
	switch {
	case signal && axis == 1:
		return nil
	case signal:
		return []int{0, 2, 1}
	case rank == 4 && axis == 3:
		return []int{0, 3, 1, 2}
	case rank == 3 && axis == 1:
		return []int{0, 2, 1}
	}
	return nil
}

// LayerShapes returns a function that returns the shape which [ChannelsFirst] would give a value.
func LayerShapes(g *onnx.Graph) func(layer string) []int {
	axis := relevance.ChannelAxes(g)
	return func(layer string) []int {
		shape := slices.Clone(g.Shape(layer))
		signal := len(shape) == 3 && relevance.Signal(g)
		for to, from := range toChannelsFirst(len(shape), axis(layer), signal) {
			shape[to] = g.Shape(layer)[from]
		}
		if signal {
			return row(shape)
		}
		return shape
	}
}
