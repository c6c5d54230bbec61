package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Mul is a product: d(x·y) = y·dx + x·dy, summed over broadcast axes.
var opMul = &Op{
	Type: "Mul", Kind: Bilinear,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x, y := n.Input[0], n.Input[1]
		return []Value{
			b.Unbroadcast(b.Mul(dy[0], y), b.Shape(x)),
			b.Unbroadcast(b.Mul(dy[0], x), b.Shape(y)),
		}
	},
	Examples: []Example{
		{Name: "equal shapes", Inputs: [][]int{{2, 3, 4}, {2, 3, 4}}},
		{Name: "a gate", Inputs: [][]int{{2, 3, 4, 4}, {2, 3, 1, 1}}},
	},
}
