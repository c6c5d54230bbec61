package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Squeeze removes axes of size 1.
var opSqueeze = &Op{
	Type: "Squeeze", Kind: Move, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Reshape(dy[0], b.Shape(n.Input[0])...)}
	},
	Examples: []Example{
		{Name: "named", Inputs: [][]int{{2, 1, 4, 1}, nil}, Consts: map[int]any{1: []int64{1}}},
		{Name: "all", Inputs: [][]int{{2, 1, 4, 1}}},
	},
}
