package relevance

import (
	"cmp"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// TokenOrder returns the permutation that sorts tokens into the row-major order of the image, tokens without
// a position first. It is nil if they are in this order already, or if their positions are unknown. axis is
// v's token axis.
//
// Hiera sorts its tokens once, so that tokens pooled later are adjacent: Ryali et al., "Hiera: A Hierarchical
// Vision Transformer without the Bells-and-Whistles", ICML 2023, appendix. To be read as a grid, they must be
// sorted back.
func TokenOrder(g *onnx.Graph, v Value, axis int) []int {
	shape := g.Shape(v)
	grid := Places(g.Tokens, shape[axis])
	if grid.IsZero() {
		return nil
	}
	others := grid.Prefix
	o := &origins{g: g, images: g.Shape(g.Inputs()[0].Name)[0], producers: map[Value]int{},
		known: map[Value][]int32{}}
	for i, n := range g.Proto.Graph.Node {
		for _, v := range n.Output {
			o.producers[v] = i
		}
	}
	of := o.of(v)
	if of == nil {
		return nil
	}
	of = corners(of, shape, len(shape)-axis) // over the channel axis
	of = of[:shape[axis]]                    // of the first image
	order := make([]int, shape[axis])
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order[others:], func(a, b int) int { return cmp.Compare(of[a], of[b]) })
	for i := others; i < len(order); i++ {
		if of[order[i]] < 0 || i > others && of[order[i]] == of[order[i-1]] {
			return nil // positions aren't unique
		}
	}
	if slices.IsSorted(order) {
		return nil
	}
	return order
}

// origins computes where in the image the elements of values come from: the row-major index of a position in
// the last layer before them with spatial positions, −1 for none. An element computed from several positions
// has the smallest of their indices, the corner of a block.
type origins struct {
	g         *onnx.Graph
	images    int           // batch size
	producers map[Value]int // by value: the index of the node that produces it
	known     map[Value][]int32
}

// maxOrigins limits the elements per image for which origins are computed. Tokens of images stay far below; a
// file may declare arbitrarily large shapes.
const maxOrigins = 1 << 23

// of returns the origins of all elements of v, nil if unknown.
func (o *origins) of(v Value) []int32 {
	if known, ok := o.known[v]; ok {
		return known
	}
	o.known[v] = nil
	if shape := o.g.Shape(v); size(shape)/o.images <= maxOrigins {
		if of := o.find(v); len(of) > 0 && len(of) == size(shape) {
			o.known[v] = of
		}
	}
	return o.known[v]
}

func (o *origins) find(v Value) []int32 {
	to := o.g.Shape(v)
	i, ok := o.producers[v]
	if !ok {
		if len(to) == 4 && v == o.g.Inputs()[0].Name {
			return grid(to, ChannelAxis(o.g, v) == 1)
		}
		return nil
	}
	n := onnx.Node{NodeProto: o.g.Proto.Graph.Node[i]}
	defer n.Named()
	in := o.g.Shape(n.In(0))
	switch n.OpType {
	case "Conv", "MaxPool", "AveragePool":
		if len(to) == 4 {
			return grid(to, true)
		}
	case "Reshape", "Flatten", "Squeeze", "Unsqueeze":
		return o.of(n.In(0))
	case "Transpose":
		if perm := n.Ints("perm"); perm == nil || permutes(perm, len(in)) {
			return moved(o.of(n.In(0)), in, perm)
		}
	case "MatMul", "Gemm":
		return o.linear(n, in, to)
	case "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum":
		return o.reduced(n, in)
	case "Concat":
		return o.joined(n, to)
	case "Slice", "Gather", "Split", "Expand", "Tile", "Pad":
	default:
		return o.elementwise(n, to)
	}
	return nil
}

// linear returns the origins of a linear layer along the last axis: those of the row.
func (o *origins) linear(n onnx.Node, in, to []int) []int32 {
	if o.g.Weight(n.In(1)) == nil || len(o.g.Shape(n.In(1))) != 2 || n.Int("transA", 0) != 0 ||
		len(in) == 0 || len(to) == 0 {
		return nil
	}
	last, width := len(in)-1, to[len(to)-1]
	if size(in[:last]) != size(to[:len(to)-1]) {
		return nil
	}
	return repeatLast(corners(o.of(n.In(0)), in, last), width)
}

// reduced returns the origins after axes are reduced: those of the corners.
func (o *origins) reduced(n onnx.Node, in []int) []int32 {
	axes := n.Ints("axes")
	if axes == nil {
		long, _ := o.g.Int64s(n.In(1))
		for _, a := range long {
			axes = append(axes, int(a))
		}
	}
	if len(axes) == 0 {
		return nil
	}
	of, shape := o.of(n.In(0)), slices.Clone(in)
	for _, a := range axes {
		a = (a + len(in)) % len(in)
		of, shape[a] = corners(of, shape, a), 1
	}
	return of
}

// elementwise returns the origins of what is computed for each element, or along channels: those of the
// operand produced first, which in residual streams is the stream.
func (o *origins) elementwise(n onnx.Node, to []int) []int32 {
	operands := slices.Clone(n.Input)
	slices.SortStableFunc(operands,
		func(a, b Value) int { return cmp.Compare(o.producers[a], o.producers[b]) })
	for _, x := range operands {
		if o.g.Weight(x) == nil && slices.Equal(o.g.Shape(x), to) {
			if of := o.of(x); of != nil {
				return of
			}
		}
	}
	return nil
}

// joined returns the origins of a Concat; operands with unknown origins, such as a class token, have none.
func (o *origins) joined(n onnx.Node, to []int) []int32 {
	axis := (n.Int("axis", 0) + len(to)) % len(to)
	some, together := false, 0
	for _, v := range n.Input {
		in := o.g.Shape(v)
		if len(in) != len(to) {
			return nil
		}
		together += size(in[axis:])
		some = some || o.of(v) != nil
	}
	if !some || together != size(to[axis:]) { // the declared shape of a file may be arbitrary
		return nil
	}
	out := make([]int32, 0, size(to))
	for outer := range size(to[:axis]) {
		for _, v := range n.Input {
			of, length := o.of(v), size(o.g.Shape(v)[axis:])
			for k := range length {
				if of == nil {
					out = append(out, -1)
				} else {
					out = append(out, of[outer*length+k])
				}
			}
		}
	}
	return out
}

// grid returns the origins of a layer's own positions.
func grid(shape []int, channelsFirst bool) []int32 {
	out := make([]int32, size(shape))
	for i := range out {
		if channelsFirst {
			out[i] = int32(i % (shape[2] * shape[3]))
		} else {
			out[i] = int32(i / shape[3] % (shape[1] * shape[2]))
		}
	}
	return out
}

// moved permutes origins by a Transpose.
func moved(of []int32, shape, perm []int) []int32 {
	if of == nil {
		return nil
	}
	rank := len(shape)
	strides, step := make([]int, rank), 1
	for i := rank - 1; i >= 0; i-- {
		strides[i], step = step, step*shape[i]
	}
	out := make([]int32, 0, len(of))
	at := make([]int, rank)
	for range of {
		from := 0
		for i := range at {
			from += at[i] * strides[axisOf(perm, i, rank)]
		}
		out = append(out, of[from])
		for i := rank - 1; i >= 0; i-- {
			if at[i]++; at[i] < shape[axisOf(perm, i, rank)] {
				break
			}
			at[i] = 0
		}
	}
	return out
}

// permutes reports whether perm is a permutation of rank axes.
func permutes(perm []int, rank int) bool {
	sorted := slices.Sorted(slices.Values(perm))
	for i, axis := range sorted {
		if axis != i {
			return false
		}
	}
	return len(sorted) == rank
}

// axisOf returns the axis that a Transpose moves to i; without a permutation it reverses the axes.
func axisOf(perm []int, i, rank int) int {
	if perm == nil {
		return rank - 1 - i
	}
	return perm[i]
}

// corners returns the minimum along an axis, which gets size 1.
func corners(of []int32, shape []int, axis int) []int32 {
	if of == nil {
		return nil
	}
	inner, n := size(shape[axis+1:]), shape[axis]
	out := make([]int32, 0, len(of)/n)
	for outer := range size(shape[:axis]) {
		for k := range inner {
			low := of[outer*n*inner+k]
			for i := 1; i < n; i++ {
				low = min(low, of[(outer*n+i)*inner+k])
			}
			out = append(out, low)
		}
	}
	return out
}

// repeatLast repeats each element along a new last axis.
func repeatLast(of []int32, n int) []int32 {
	if of == nil {
		return nil
	}
	out := make([]int32, 0, len(of)*n)
	for _, v := range of {
		for range n {
			out = append(out, v)
		}
	}
	return out
}
