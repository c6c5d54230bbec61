package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Relu passes the cotangent on where its output is positive.
var opRelu = &Op{
	Type: "Relu", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Mul(dy[0], b.Greater(n.Output[0], b.Scalar(0)))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 4}}}},
}
