package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// ReduceL1 is Σ|x| over axes: dx = dy·sign x.
var opReduceL1 = &Op{
	Type: "ReduceL1", Kind: Joint, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x := n.Input[0]
		shape := b.Shape(x)
		thin := kept(shape, b.reducedAxes(n, len(shape)))
		g := b.Reshape(dy[0], thin...)
		return []Value{b.Mul(b.sign(x), g)}
	},
	Examples: []Example{
		{Name: "the last", Inputs: [][]int{{2, 3, 5}},
			Attrs: []onnx.Attr{{Name: "axes", Value: []int64{-1}}, {Name: "keepdims", Value: 0}}},
		{Name: "places", Inputs: [][]int{{2, 3, 3, 5}},
			Attrs: []onnx.Attr{{Name: "axes", Value: []int64{2, 3}}}},
	},
}
