package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// ReduceMean is the mean over axes: each element gets an equal part of the cotangent.
var opReduceMean = &Op{
	Type: "ReduceMean", Kind: Affine, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		shape := b.Shape(n.Input[0])
		axes := b.reducedAxes(n, len(shape))
		part := b.Div(b.Reshape(dy[0], kept(shape, axes)...), b.Scalar(float32(count(shape, axes))))
		return []Value{b.Expand(part, shape...)}
	},
	Examples: []Example{
		{Name: "tokens", Inputs: [][]int{{2, 4, 5}}, Attrs: []onnx.Attr{
			{Name: "axes", Value: []int64{1}}, {Name: "keepdims", Value: 0}}},
		{Name: "the last, kept", Inputs: [][]int{{2, 3, 8}},
			Attrs: []onnx.Attr{{Name: "axes", Value: []int64{-1}}}},
		{Name: "places", Inputs: [][]int{{2, 3, 4, 4}},
			Attrs: []onnx.Attr{{Name: "axes", Value: []int64{-1, -2}}}},
		{Name: "everything", Inputs: [][]int{{4, 8}}},
	},
}
