package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// InstanceNormalization is y = γ·x̂ + β, x̂ = (x − μ)·r, with the mean μ and the reciprocal standard
// deviation r of the N positions of a channel of an image: dx = γ·r·(dy − Σdy/N − x̂·Σ(dy·x̂)/N).
var opInstanceNormalization = &Op{
	Type: "InstanceNormalization", Kind: Joint, Roles: []Role{Data, Weight, Bias},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x := n.Input[0]
		shape := b.Shape(x)
		var axes []int
		for i := range shape[2:] {
			axes = append(axes, 2+i)
		}
		mean := func(v Value) Value {
			return b.Div(b.Sum(v, axes, true), b.Scalar(float32(count(shape, axes))))
		}
		centred := b.Sub(x, mean(x))
		deviation := b.Unary("Sqrt", b.Add(mean(b.Mul(centred, centred)), b.Scalar(n.Float("epsilon", 1e-5))))
		normal := b.Div(centred, deviation)
		g := b.Sub(b.Sub(dy[0], mean(dy[0])), b.Mul(normal, mean(b.Mul(dy[0], normal))))
		return []Value{b.Mul(g, b.Div(b.channels(n.Input[1], len(shape)), deviation))}
	},
	Examples: []Example{
		{Name: "images", Inputs: [][]int{{2, 3, 3, 5}, {3}, {3}}},
		{Name: "signals", Inputs: [][]int{{2, 3, 5}, {3}, {3}},
			Attrs: []onnx.Attr{{Name: "epsilon", Value: float32(0.25)}}},
	},
}
