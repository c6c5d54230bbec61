package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Acos has dx = −dy/√(1 − x²).
var opAcos = &Op{
	Type: "Acos", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Unary("Neg", b.Div(dy[0], b.Unary("Sqrt", b.Sub(b.Scalar(1),
			b.square(n.Input[0])))))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}, Draw: inUnit}},
}
