package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Reciprocal is y = 1/x: dx = −dy·y².
var opReciprocal = &Op{
	Type: "Reciprocal", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		y := n.Output[0]
		return []Value{b.Unary("Neg", b.Mul(dy[0], b.Mul(y, y)))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}, Draw: aboveZero}},
}
