package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// GlobalAveragePool is the mean over the positions of a channel; each gets an equal part of the cotangent.
var opGlobalAveragePool = &Op{
	Type: "GlobalAveragePool", Kind: Affine,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		shape := b.Shape(n.Input[0])
		return []Value{b.Expand(b.Div(dy[0], b.Scalar(float32(size(shape[2:])))), shape...)}
	},
	Examples: []Example{
		{Name: "images", Inputs: [][]int{{2, 3, 4, 4}}},
		{Name: "signals", Inputs: [][]int{{2, 3, 5}}},
	},
}
