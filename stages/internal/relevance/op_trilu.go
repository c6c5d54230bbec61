package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Trilu keeps a triangle of each matrix, and of the cotangents.
var opTrilu = &Op{
	Type: "Trilu", Kind: Move, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		in := []Value{dy[0]}
		if n.In(1) != "" {
			in = append(in, n.In(1))
		}
		return []Value{b.Emit("Trilu", b.Shape(n.Input[0]), in,
			onnx.Attr{Name: "upper", Value: n.Int("upper", 1)})}
	},
	Examples: []Example{
		{Name: "upper", Inputs: [][]int{{2, 4, 4}}},
		{Name: "lower without the diagonal", Inputs: [][]int{{2, 3, 4}, nil},
			Consts: map[int]any{1: int64(-1)}, Attrs: []onnx.Attr{{Name: "upper", Value: 0}}},
	},
}
