package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// ReduceL2 is y = √Σx² over axes: dx = dy·x/y, and 0 if y is 0.
var opReduceL2 = &Op{
	Type: "ReduceL2", Kind: Joint, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x := n.Input[0]
		shape := b.Shape(x)
		thin := kept(shape, b.reducedAxes(n, len(shape)))
		g := b.Reshape(dy[0], thin...)
		return []Value{b.Mul(x, b.Div(g, b.orOne(b.Reshape(n.Output[0], thin...))))}
	},
	Examples: []Example{
		{Name: "the last", Inputs: [][]int{{2, 3, 5}},
			Attrs: []onnx.Attr{{Name: "axes", Value: []int64{-1}}, {Name: "keepdims", Value: 0}}},
		{Name: "places", Inputs: [][]int{{2, 3, 3, 5}},
			Attrs: []onnx.Attr{{Name: "axes", Value: []int64{2, 3}}}},
	},
}

// orOne returns lengths with 0 replaced by 1, for use as divisors.
func (b *Builder) orOne(length Value) Value {
	return b.Add(length, b.Sub(b.Scalar(1), b.sign(length)))
}
