package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Expand broadcasts its input; the cotangents of the copies are summed.
var opExpand = &Op{
	Type: "Expand", Kind: Move, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Unbroadcast(dy[0], b.Shape(n.Input[0]))}
	},
	Examples: []Example{
		{Name: "a column", Inputs: [][]int{{2, 3, 1}, nil}, Consts: map[int]any{1: []int64{2, 3, 5}}},
		{Name: "more axes", Inputs: [][]int{{3, 1}, nil}, Consts: map[int]any{1: []int64{2, 1, 4}}},
		{Name: "nothing", Inputs: [][]int{{2, 3}, nil}, Consts: map[int]any{1: []int64{1, 1}}},
	},
}
