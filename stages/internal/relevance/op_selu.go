package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Selu is γx for x > 0 and otherwise y = γα·(exp x − 1).
var opSelu = &Op{
	Type: "Selu", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		const alpha, gamma = 1.67326319217681884765625, 1.05070102214813232421875 // ONNX's defaults
		g := n.Float("gamma", gamma)
		return []Value{b.Mul(dy[0], b.exponential(n, g, g*n.Float("alpha", alpha)))}
	},
	Examples: []Example{
		{Name: "any", Inputs: [][]int{{2, 3, 5}}},
		{Name: "other numbers", Inputs: [][]int{{2, 3, 5}},
			Attrs: []onnx.Attr{{Name: "alpha", Value: float32(0.5)}, {Name: "gamma", Value: float32(2)}}},
	},
}
