package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// LogSoftmax is yᵢ = xᵢ − log Σ exp xⱼ along an axis: dx = dy − exp y·Σ dy.
var opLogSoftmax = &Op{
	Type: "LogSoftmax", Kind: Joint,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		y := n.Output[0]
		axis := b.axis(n, -1, len(b.Shape(y)))
		return []Value{b.Sub(dy[0], b.Mul(b.Unary("Exp", y), b.Sum(dy[0], []int{axis}, true)))}
	},
	Examples: []Example{
		{Name: "classes", Inputs: [][]int{{2, 7}}},
		{Name: "channels", Inputs: [][]int{{2, 5, 3}}, Attrs: []onnx.Attr{{Name: "axis", Value: 1}}},
	},
}
