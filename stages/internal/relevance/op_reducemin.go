package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// ReduceMin is the smallest element over axes, the first one of ties, which gets the cotangent.
var opReduceMin = &Op{
	Type: "ReduceMin", Kind: Select, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x := n.Input[0]
		return []Value{b.toBest("ArgMin", x, dy[0], b.reducedAxes(n, len(b.Shape(x))))}
	},
	Examples: []Example{
		{Name: "the last", Inputs: [][]int{{2, 3, 5}}, Draw: apart,
			Attrs: []onnx.Attr{{Name: "axes", Value: []int64{-1}}, {Name: "keepdims", Value: 0}}},
		{Name: "places", Inputs: [][]int{{2, 3, 3, 5}}, Draw: apart,
			Attrs: []onnx.Attr{{Name: "axes", Value: []int64{2, 3}}}},
	},
}
