package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// ReduceMax is the largest element over axes, the first one of ties, which gets the cotangent.
var opReduceMax = &Op{
	Type: "ReduceMax", Kind: Select, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x := n.Input[0]
		return []Value{b.toBest("ArgMax", x, dy[0], b.reducedAxes(n, len(b.Shape(x))))}
	},
	Examples: []Example{
		{Name: "the last", Inputs: [][]int{{2, 3, 5}}, Draw: apart,
			Attrs: []onnx.Attr{{Name: "axes", Value: []int64{-1}}, {Name: "keepdims", Value: 0}}},
		{Name: "places", Inputs: [][]int{{2, 3, 3, 5}}, Draw: apart,
			Attrs: []onnx.Attr{{Name: "axes", Value: []int64{2, 3}}}},
		{Name: "others", Inputs: [][]int{{2, 3, 4, 5}}, Draw: apart,
			Attrs: []onnx.Attr{{Name: "axes", Value: []int64{1, 3}}}},
		{Name: "everything", Inputs: [][]int{{3, 5}}, Draw: apart},
	},
}

// toBest emits dy at the elements of x selected by arg, ArgMax or ArgMin, over axes, and zeros elsewhere.
func (b *Builder) toBest(arg string, x, dy Value, axes []int) Value {
	shape := b.Shape(x)
	var perm, rest []int
	for i, d := range shape {
		if !slices.Contains(axes, i) {
			perm, rest = append(perm, i), append(rest, d)
		}
	}
	perm = append(perm, axes...)
	moved := make([]int, len(shape))
	for i, p := range perm {
		moved[i] = shape[p]
	}
	rows, n := size(rest), count(shape, axes)
	lines := b.Reshape(b.Transpose(x, perm...), rows, n)
	if b.without.Indices {
		reduction := map[string]string{"ArgMax": "ReduceMax", "ArgMin": "ReduceMin"}[arg]
		return b.Transpose(b.Reshape(b.toFirstBest(reduction, lines, dy), moved...), inverse(perm)...)
	}
	best := b.EmitTyped(arg, onnxpb.TensorProto_INT64, []int{rows, 1}, []Value{lines},
		onnx.Attr{Name: "axis", Value: 1})
	places := alloc[int64](b, n)
	for i := range places {
		places[i] = int64(i)
	}
	mask := b.mask("Equal", best, b.Int64s(places, 1, n))
	dx := b.Mul(mask, b.Reshape(dy, rows, 1))
	return b.Transpose(b.Reshape(dx, moved...), inverse(perm)...)
}
