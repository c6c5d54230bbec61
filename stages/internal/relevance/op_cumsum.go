package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// CumSum is the cumulative sum along an axis; cotangents are summed from the other end.
var opCumSum = &Op{
	Type: "CumSum", Kind: Affine, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Emit("CumSum", b.Shape(n.Input[0]), []Value{dy[0], n.Input[1]},
			onnx.Attr{Name: "exclusive", Value: n.Int("exclusive", 0)},
			onnx.Attr{Name: "reverse", Value: 1 - n.Int("reverse", 0)})}
	},
	Examples: []Example{
		{Name: "forwards", Inputs: [][]int{{2, 3, 5}, nil}, Consts: map[int]any{1: int64(2)}},
		{Name: "backwards, without one's own", Inputs: [][]int{{2, 3, 5}, nil},
			Consts: map[int]any{1: int64(-2)},
			Attrs:  []onnx.Attr{{Name: "exclusive", Value: 1}, {Name: "reverse", Value: 1}}},
	},
}
