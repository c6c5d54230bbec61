package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Elu is x for x > 0 and otherwise y = α·(exp x − 1): dx = dy·([x > 0] + (1 − [x > 0])·(y + α)).
var opElu = &Op{
	Type: "Elu", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Mul(dy[0], b.exponential(n, 1, n.Float("alpha", 1)))}
	},
	Examples: []Example{
		{Name: "any", Inputs: [][]int{{2, 3, 5}}},
		{Name: "lower", Inputs: [][]int{{2, 3, 5}}, Attrs: []onnx.Attr{{Name: "alpha", Value: float32(0.5)}}},
	},
}

// exponential emits the derivative of an Elu with slope gain for x > 0 and limit −depth.
func (b *Builder) exponential(n onnx.Node, gain, depth float32) Value {
	up := b.Greater(n.Input[0], b.Scalar(0))
	low := b.Mul(b.Sub(b.Scalar(1), up), b.Add(n.Output[0], b.Scalar(depth)))
	if gain != 1 {
		up = b.Mul(up, b.Scalar(gain))
	}
	return b.Add(up, low)
}
