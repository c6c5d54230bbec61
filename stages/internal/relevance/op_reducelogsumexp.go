package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// ReduceLogSumExp is y = log Σ exp x over axes: dx = dy·exp(x − y).
var opReduceLogSumExp = &Op{
	Type: "ReduceLogSumExp", Kind: Joint, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x := n.Input[0]
		shape := b.Shape(x)
		thin := kept(shape, b.reducedAxes(n, len(shape)))
		g := b.Reshape(dy[0], thin...)
		return []Value{b.Mul(b.Unary("Exp", b.Sub(x, b.Reshape(n.Output[0], thin...))), g)}
	},
	Examples: []Example{
		{Name: "the last", Inputs: [][]int{{2, 3, 5}},
			Attrs: []onnx.Attr{{Name: "axes", Value: []int64{-1}}, {Name: "keepdims", Value: 0}}},
		{Name: "places", Inputs: [][]int{{2, 3, 3, 5}},
			Attrs: []onnx.Attr{{Name: "axes", Value: []int64{2, 3}}}},
	},
}
