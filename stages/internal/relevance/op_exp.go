package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Exp is its own derivative: dx = dy·y.
var opExp = &Op{
	Type: "Exp", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Mul(dy[0], n.Output[0])}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}}},
}
