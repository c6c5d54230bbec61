package relevance

import (
	"math"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Erf is (2/√π)·∫₀ˣ exp(−t²) dt: dx = dy·(2/√π)·exp(−x²). Exporters write GELU with it.
var opErf = &Op{
	Type: "Erf", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x := n.Input[0]
		part := b.Div(dy[0], b.Unary("Exp", b.Mul(x, x))) // an overflow gives 0
		return []Value{b.Mul(part, b.Scalar(2/math.SqrtPi))}
	},
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3, 5}}}},
}
