package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Cos has dx = −dy·sin x.
var opCos = &Op{
	Type: "Cos", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Unary("Neg", b.Mul(dy[0], b.Unary("Sin", n.Input[0])))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}}},
}
