package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Neg is y = −x: dx = −dy.
var opNeg = &Op{
	Type: "Neg", Kind: Affine,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Unary("Neg", dy[0])}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}}},
}
