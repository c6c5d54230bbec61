package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Mean is the mean of its inputs with broadcasting.
var opMean = &Op{
	Type: "Mean", Kind: Sum,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return b.shared(n, b.Div(dy[0], b.Scalar(float32(len(n.Input)))))
	},
	Examples: []Example{{Name: "four", Inputs: [][]int{{2, 3, 5}, {2, 3, 5}, {2, 1, 5}, {2, 3, 5}}}},
}
