package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// LpNormalization is y = x/‖x‖ along an axis, with ‖x‖ = Σ|x| or √Σx²: dx = (dy − s·Σ dy·y)/‖x‖, where s is
// sign x or y, respectively; 0 if ‖x‖ is 0, as y.
var opLpNormalization = &Op{
	Type: "LpNormalization", Kind: Joint,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x, y := n.Input[0], n.Output[0]
		axes := []int{b.axis(n, -1, len(b.Shape(x)))}
		norm, slope := b.Sum(b.Unary("Abs", x), axes, true), b.sign(x)
		if n.Int("p", 2) == 2 {
			norm, slope = b.Unary("Sqrt", b.Sum(b.Mul(x, x), axes, true)), y
		}
		mean := b.Sum(b.Mul(dy[0], y), axes, true)
		scale := b.Div(b.sign(norm), b.orOne(norm))
		return []Value{b.Mul(b.Sub(dy[0], b.Mul(slope, mean)), scale)}
	},
	Examples: []Example{
		{Name: "the last", Inputs: [][]int{{2, 3, 5}}},
		{Name: "channels", Inputs: [][]int{{2, 3, 4, 4}},
			Attrs: []onnx.Attr{{Name: "axis", Value: 1}, {Name: "p", Value: 2}}},
		{Name: "of magnitudes", Inputs: [][]int{{2, 3, 5}},
			Attrs: []onnx.Attr{{Name: "axis", Value: -2}, {Name: "p", Value: 1}}},
	},
}
