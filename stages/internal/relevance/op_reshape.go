package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Reshape keeps the elements and their order.
var opReshape = &Op{
	Type: "Reshape", Kind: Move, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Reshape(dy[0], b.Shape(n.Input[0])...)}
	},
	Examples: []Example{
		{Name: "flatten", Inputs: [][]int{{2, 3, 4}, nil}, Consts: map[int]any{1: []int64{0, -1}}},
		{Name: "heads", Inputs: [][]int{{2, 3, 8}, nil}, Consts: map[int]any{1: []int64{0, 3, 2, -1}}},
	},
}
