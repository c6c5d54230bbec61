package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Atan has dx = dy/(1 + x²).
var opAtan = &Op{
	Type: "Atan", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Div(dy[0], b.Add(b.square(n.Input[0]), b.Scalar(1)))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}}},
}
