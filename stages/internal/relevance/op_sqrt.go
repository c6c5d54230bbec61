package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Sqrt is y = √x: dx = dy/(2·y).
var opSqrt = &Op{
	Type: "Sqrt", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Div(dy[0], b.Mul(n.Output[0], b.Scalar(2)))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}, Draw: aboveZero}},
}
