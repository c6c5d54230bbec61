package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Softsign is x/(1 + |x|): dx = dy/(1 + |x|)².
var opSoftsign = &Op{
	Type: "Softsign", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		d := b.Add(b.Unary("Abs", n.Input[0]), b.Scalar(1))
		return []Value{b.Div(dy[0], b.Mul(d, d))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}}},
}
