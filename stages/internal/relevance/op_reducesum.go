package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// ReduceSum is the sum over axes: each element gets the whole cotangent.
var opReduceSum = &Op{
	Type: "ReduceSum", Kind: Affine, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		shape := b.Shape(n.Input[0])
		return []Value{b.Expand(b.Reshape(dy[0], kept(shape, b.reducedAxes(n, len(shape)))...), shape...)}
	},
	Examples: []Example{
		{Name: "tokens", Inputs: [][]int{{2, 4, 5}, nil}, Consts: map[int]any{1: []int64{1}},
			Attrs: []onnx.Attr{{Name: "keepdims", Value: 0}}},
		{Name: "the last, kept", Inputs: [][]int{{2, 3, 5}, nil}, Consts: map[int]any{1: []int64{-1}}},
		{Name: "everything", Inputs: [][]int{{3, 5}}},
		{Name: "nothing", Inputs: [][]int{{2, 5}},
			Attrs: []onnx.Attr{{Name: "noop_with_empty_axes", Value: 1}}},
	},
}
