package relevance

import (
	"math"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Erf is (2/√π)·∫₀ˣ exp(−t²) dt: dx = dy·(2/√π)·exp(−x²). With it GELU is written.
var opErf = &Op{
	Type: "Erf", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x := n.Input[0]
		bell := b.Unary("Exp", b.Unary("Neg", b.Mul(x, x)))
		return []Value{b.Mul(dy[0], b.Mul(bell, b.Scalar(2/math.SqrtPi)))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}}},
}
