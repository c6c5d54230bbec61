package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Softplus is log(1 + exp x): dx = dy/(1 + exp −x).
var opSoftplus = &Op{
	Type: "Softplus", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Mul(dy[0], b.Unary("Sigmoid", n.Input[0]))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}}},
}
