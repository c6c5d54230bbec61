package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Div is z = x/y with broadcasting: dx = dz/y, dy = −dz·z/y, summed over broadcast axes.
var opDiv = &Op{
	Type: "Div", Kind: Joint,
	VJP: func(b *Builder, n onnx.Node, dz []Value) []Value {
		x, y := n.Input[0], n.Input[1]
		part := b.Div(dz[0], y)
		back := []Value{b.Unbroadcast(part, b.Shape(x)), ""}
		if b.dynamic(y) {
			back[1] = b.Unbroadcast(b.Unary("Neg", b.Mul(part, n.Output[0])), b.Shape(y))
		}
		return back
	},
	Examples: []Example{
		{Name: "equal shapes", Inputs: [][]int{{2, 3, 5}, {2, 3, 5}}, Draw: aboveZero},
		{Name: "a deviation", Inputs: [][]int{{2, 3, 5}, {2, 3, 1}}, Draw: aboveZero},
		{Name: "a number", Inputs: [][]int{{2, 3, 5}, nil}, Consts: map[int]any{1: float32(8)}},
	},
}
