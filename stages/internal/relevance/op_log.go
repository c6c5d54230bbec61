package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Log is the natural logarithm: dx = dy/x.
var opLog = &Op{
	Type: "Log", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Div(dy[0], n.Input[0])}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}, Draw: aboveZero}},
}
