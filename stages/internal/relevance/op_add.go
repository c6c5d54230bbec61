package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Add is a sum with broadcasting: each operand gets the cotangent, summed over broadcast axes.
var opAdd = &Op{
	Type: "Add", Kind: Sum,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{
			b.Unbroadcast(dy[0], b.Shape(n.Input[0])),
			b.Unbroadcast(dy[0], b.Shape(n.Input[1])),
		}
	},
	Examples: []Example{
		{Name: "equal shapes", Inputs: [][]int{{2, 3, 4}, {2, 3, 4}}},
		{Name: "a bias", Inputs: [][]int{{2, 3, 4}, {4}}},
		{Name: "a column", Inputs: [][]int{{2, 1, 4}, {2, 3, 1}}},
	},
}
