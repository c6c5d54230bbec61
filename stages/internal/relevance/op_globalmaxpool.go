package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// GlobalMaxPool is the largest element of a channel, the first one of ties, which gets the cotangent.
var opGlobalMaxPool = &Op{
	Type: "GlobalMaxPool", Kind: Select,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x := n.Input[0]
		var axes []int
		for i := range b.Shape(x)[2:] {
			axes = append(axes, 2+i)
		}
		return []Value{b.toBest("ArgMax", x, dy[0], axes)}
	},
	Examples: []Example{{Name: "images", Inputs: [][]int{{2, 3, 3, 5}}, Draw: apart}},
}
