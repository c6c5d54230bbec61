package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Sin has dx = dy·cos x.
var opSin = &Op{
	Type: "Sin", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Mul(dy[0], b.Unary("Cos", n.Input[0]))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}}},
}
