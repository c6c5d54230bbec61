package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// TopK selects the largest or smallest elements along an axis, and returns their indices; the cotangents are
// moved back to these.
var opTopK = &Op{
	Type: "TopK", Kind: Select, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		if dy[0] == "" {
			return nil
		}
		shape := b.Shape(n.Input[0])
		return []Value{b.Emit("ScatterElements", shape, []Value{b.Zeros(shape...), n.Output[1], dy[0]},
			onnx.Attr{Name: "axis", Value: b.axis(n, -1, len(shape))})}
	},
	Examples: []Example{
		{Name: "the largest", Inputs: [][]int{{2, 3, 7}, nil}, Consts: map[int]any{1: []int64{3}},
			Draw: apart},
		{Name: "the smallest of places", Inputs: [][]int{{2, 5, 3}, nil}, Consts: map[int]any{1: []int64{2}},
			Draw: apart, Attrs: []onnx.Attr{{Name: "axis", Value: 1}, {Name: "largest", Value: 0}}},
	},
}
