package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Tanh has dx = dy·(1 − y²).
var opTanh = &Op{
	Type: "Tanh", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		y := n.Output[0]
		return []Value{b.Mul(dy[0], b.Sub(b.Scalar(1), b.Mul(y, y)))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}}},
}
