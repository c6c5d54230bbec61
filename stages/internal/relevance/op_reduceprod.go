package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// ReduceProd is the product over axes: each element gets the product of the others. Where an element is 0,
// that is 0 for all but it, and with a second 0 for it too.
var opReduceProd = &Op{
	Type: "ReduceProd", Kind: Joint, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x := n.Input[0]
		shape := b.Shape(x)
		axes := b.reducedAxes(n, len(shape))
		thin := kept(shape, axes)
		zero := b.mask("Equal", x, b.Scalar(0))
		zeros := b.Reshape(b.Sum(zero, axes, true), thin...)
		filled := b.Add(x, zero)
		long := make([]int64, len(axes))
		for i, a := range axes {
			long[i] = int64(a)
		}
		product := b.Emit("ReduceProd", thin, []Value{filled}, onnx.Attr{Name: "axes", Value: long})
		// The factors that aren't 0, for the elements whose others aren't: all where there is no 0, or the 0.
		others := b.mask("Equal", zeros, zero)
		return []Value{b.Mul(b.Mul(b.Reshape(dy[0], thin...), others), b.Div(product, filled))}
	},
	Examples: []Example{
		{Name: "the last", Inputs: [][]int{{2, 3, 5}},
			Attrs: []onnx.Attr{{Name: "axes", Value: []int64{-1}}, {Name: "keepdims", Value: 0}}},
		{Name: "places", Inputs: [][]int{{2, 3, 3, 5}},
			Attrs: []onnx.Attr{{Name: "axes", Value: []int64{2, 3}}}},
		{Name: "everything", Inputs: [][]int{{3, 5}}},
	},
}
