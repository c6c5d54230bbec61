package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Abs has dx = dy·sign x.
var opAbs = &Op{
	Type: "Abs", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Mul(dy[0], b.sign(n.Input[0]))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}}},
}
