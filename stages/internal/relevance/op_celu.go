package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Celu is x for x > 0 and otherwise y = α·(exp(x/α) − 1): dx = dy·([x > 0] + (1 − [x > 0])·(y/α + 1)).
var opCelu = &Op{
	Type: "Celu", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		up := b.Greater(n.Input[0], b.Scalar(0))
		low := b.Add(b.Div(n.Output[0], b.Scalar(n.Float("alpha", 1))), b.Scalar(1))
		return []Value{b.Mul(dy[0], b.Add(up, b.Mul(b.Sub(b.Scalar(1), up), low)))}
	},
	Examples: []Example{
		{Name: "any", Inputs: [][]int{{2, 3, 5}}, Attrs: []onnx.Attr{{Name: "alpha", Value: float32(0.75)}}},
	},
}
