package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// PRelu is x for x > 0 and otherwise x times a learned slope: dx = dy·([x > 0] + (1 − [x > 0])·slope).
var opPRelu = &Op{
	Type: "PRelu", Kind: Activation, Roles: []Role{Data, Weight},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		up := b.Greater(n.Input[0], b.Scalar(0))
		low := b.Mul(b.Sub(b.Scalar(1), up), n.Input[1])
		return []Value{b.Mul(dy[0], b.Add(up, low)), ""}
	},
	Examples: []Example{
		{Name: "one slope", Inputs: [][]int{{2, 3, 5}, {1}}},
		{Name: "one a channel", Inputs: [][]int{{2, 3, 5}, {3, 1}}},
	},
}
