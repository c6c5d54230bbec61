package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Shrink moves x by a bias towards 0 if |x| > λ, and is 0 otherwise: dx = dy·[|x| > λ].
var opShrink = &Op{
	Type: "Shrink", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Mul(dy[0], b.Greater(b.Unary("Abs", n.Input[0]), b.Scalar(n.Float("lambd", 0.5))))}
	},
	Examples: []Example{
		{Name: "any", Inputs: [][]int{{2, 3, 5}}, Draw: apart,
			Attrs: []onnx.Attr{{Name: "lambd", Value: float32(10.25)}, {Name: "bias", Value: float32(0.75)}}},
	},
}
