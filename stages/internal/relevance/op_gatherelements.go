package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// GatherElements selects elements along an axis, each by its own index. The cotangents are added at the
// selected elements.
var opGatherElements = &Op{
	Type: "GatherElements", Kind: Move, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		shape := b.Shape(n.Input[0])
		return []Value{b.Emit("ScatterElements", shape, []Value{b.Zeros(shape...), n.Input[1], dy[0]},
			onnx.Attr{Name: "axis", Value: b.axis(n, 0, len(shape))},
			onnx.Attr{Name: "reduction", Value: "add"})}
	},
	Examples: []Example{
		{Name: "some twice", Inputs: [][]int{{3, 4}, nil},
			Consts: map[int]any{1: onnx.IntTensor("", []int64{3, 1, 3, 0, 2, -1}, 3, 2)},
			Attrs:  []onnx.Attr{{Name: "axis", Value: 1}}},
		{Name: "the first axis", Inputs: [][]int{{3, 4}, nil},
			Consts: map[int]any{1: onnx.IntTensor("", []int64{2, 0, 1, 2}, 1, 4)}},
	},
}
