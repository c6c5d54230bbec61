package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Tan is y = tan x: dx = dy·(1 + y²).
var opTan = &Op{
	Type: "Tan", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Mul(dy[0], b.Add(b.square(n.Output[0]), b.Scalar(1)))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}, Draw: inUnit}},
}
