package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// GatherND selects parts by their indices on the first axes. The cotangents are added at the selected parts.
var opGatherND = &Op{
	Type: "GatherND", Kind: Move, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		if n.Int("batch_dims", 0) != 0 {
			b.Fail(n, "batch_dims isn't supported")
			return nil
		}
		shape := b.Shape(n.Input[0])
		return []Value{b.Emit("ScatterND", shape, []Value{b.Zeros(shape...), n.Input[1], dy[0]},
			onnx.Attr{Name: "reduction", Value: "add"})}
	},
	Examples: []Example{
		{Name: "elements", Inputs: [][]int{{3, 4}, nil},
			Consts: map[int]any{1: onnx.IntTensor("", []int64{0, 1, 2, 3, 0, 1}, 3, 2)}},
		{Name: "rows", Inputs: [][]int{{3, 4, 2}, nil},
			Consts: map[int]any{1: onnx.IntTensor("", []int64{2, 1, -1}, 3, 1)}},
	},
}
