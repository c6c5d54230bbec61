package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Min is the smallest of its inputs, element-wise with broadcasting; ties share the cotangent.
var opMin = &Op{
	Type: "Min", Kind: Select,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value { return b.chosen(n, dy[0]) },
	Examples: []Example{
		{Name: "two", Inputs: [][]int{{2, 3, 5}, {2, 3, 5}}, Draw: apart},
		{Name: "a bound", Inputs: [][]int{{2, 3, 5}, nil}, Consts: map[int]any{1: float32(-3.25)},
			Draw: apart},
		{Name: "three and broadcasting", Inputs: [][]int{{2, 3, 5}, {2, 1, 5}, {5}}, Draw: apart},
		{Name: "one", Inputs: [][]int{{2, 3}}},
	},
}
