package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Sigmoid is y = 1/(1 + exp −x): dx = dy·y·(1 − y).
var opSigmoid = &Op{
	Type: "Sigmoid", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		y := n.Output[0]
		return []Value{b.Mul(dy[0], b.Mul(y, b.Sub(b.Scalar(1), y)))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}}},
}
