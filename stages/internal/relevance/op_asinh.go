package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Asinh has dx = dy/√(x² + 1).
var opAsinh = &Op{
	Type: "Asinh", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Div(dy[0], b.Unary("Sqrt", b.Add(b.square(n.Input[0]), b.Scalar(1))))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}}},
}
