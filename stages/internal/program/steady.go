package program

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// vector is how many float32 the kernels of reductions add at once, from an address
// that is a multiple of that.
const vector = 4

// steady writes sums and means of values, an image's part of which doesn't end where a
// vector does, as products with ones: where the next image begins between two, the
// reductions' own kernels add its numbers in another order, so that bits would depend
// on the row.
func steady(g *onnx.Graph, batch int) {
	nodes := g.Proto.Graph.Node
	g.Proto.Graph.Node = nil
	for _, proto := range nodes {
		n := onnx.Node{NodeProto: proto}
		r, ok := reductionOf(g, n)
		if !ok || size(r.shape)/batch%vector == 0 {
			g.Proto.Graph.Node = append(g.Proto.Graph.Node, proto)
			continue
		}
		r.emit(g, n)
	}
}

// A reduction is a sum over axes of a value.
type reduction struct {
	shape      []int // of the value
	rest, axes []int // sorted
}

// reductionOf returns the sum over axes that n computes, or takes the mean of; false
// if it does anything else.
func reductionOf(g *onnx.Graph, n onnx.Node) (reduction, bool) {
	defer n.Named()
	if n.OpType != "ReduceMean" && n.OpType != "ReduceSum" || g.Types[n.In(0)].Elem != onnxpb.TensorProto_FLOAT {
		return reduction{}, false
	}
	r := reduction{shape: g.Shape(n.In(0))}
	over := n.Ints("axes")
	if n.In(1) != "" {
		constant, ok := g.Int64s(n.In(1))
		if !ok {
			return r, false
		}
		for _, a := range constant {
			over = append(over, int(a))
		}
	}
	all := len(over) == 0 && n.Int("noop_with_empty_axes", 0) == 0
	for i := range r.shape {
		if all || slices.Contains(over, i) || slices.Contains(over, i-len(r.shape)) {
			r.axes = append(r.axes, i)
		} else {
			r.rest = append(r.rest, i)
		}
	}
	return r, len(r.axes) > 0
}

// emit emits what n computes.
func (r reduction) emit(g *onnx.Graph, n onnx.Node) {
	defer n.Named()
	f := g.Fragment()
	op := func(op string, in []string, shape []int, attrs ...onnx.Attr) string {
		v := f.Op(op, in, attrs...)
		g.Types[v] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: shape}
		return v
	}
	var perm []int64
	var moved []int
	for _, a := range slices.Concat(r.rest, r.axes) {
		perm, moved = append(perm, int64(a)), append(moved, r.shape[a])
	}
	rows, count := size(moved[:len(r.rest)]), size(moved[len(r.rest):])
	x := op("Transpose", n.Input[:1], moved, onnx.Attr{Name: "perm", Value: perm})
	x = op("Reshape", []string{x, f.Ints("rows", []int64{int64(rows), int64(count)}, 2)}, []int{rows, count})
	one := f.Floats("one", []float32{1}, 1)
	ones := op("Expand", []string{one, f.Ints("ones", []int64{int64(count), 1}, 2)}, []int{count, 1})
	x = op("MatMul", []string{x, ones}, []int{rows, 1})
	if n.OpType == "ReduceMean" {
		x = op("Div", []string{x, f.Floats("count", []float32{float32(count)}, 1)}, []int{rows, 1})
	}
	var to []int64
	for _, d := range g.Shape(n.Output[0]) {
		to = append(to, int64(d))
	}
	f.OpTo(n.Output[0], "Reshape", []string{x, f.Ints("shape", to, int64(len(to)))})
	g.After(f)
}
