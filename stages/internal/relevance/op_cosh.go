package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Cosh has dx = dy·sinh x, with sinh x = (eˣ − e⁻ˣ)/2.
var opCosh = &Op{
	Type: "Cosh", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		up, down := b.Unary("Exp", n.Input[0]), b.Unary("Exp", b.Unary("Neg", n.Input[0]))
		return []Value{b.Mul(dy[0], b.Mul(b.Scalar(0.5), b.Sub(up, down)))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}}},
}
