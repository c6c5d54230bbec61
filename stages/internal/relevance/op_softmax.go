package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Softmax is yᵢ = exp xᵢ / Σ exp xⱼ along an axis: dx = y·(dy − Σ dy·y).
var opSoftmax = &Op{
	Type: "Softmax", Kind: Joint,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		y := n.Output[0]
		axis := b.axis(n, -1, len(b.Shape(y)))
		p := b.Mul(dy[0], y)
		return []Value{b.Sub(p, b.Mul(y, b.Sum(p, []int{axis}, true)))}
	},
	Examples: []Example{
		{Name: "classes", Inputs: [][]int{{2, 7}}},
		{Name: "attention", Inputs: [][]int{{2, 3, 5, 5}}, Attrs: []onnx.Attr{{Name: "axis", Value: -1}}},
		{Name: "channels", Inputs: [][]int{{2, 5, 3}}, Attrs: []onnx.Attr{{Name: "axis", Value: 1}}},
	},
}
