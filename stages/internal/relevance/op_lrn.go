package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// LRN is y = x·s^−β with s = k + (α/N)·Σ x² over N neighbouring channels. The sum is a product with a band
// matrix W: dx = dy·s^−β − (2αβ/N)·x·Wᵀ(dy·y/s).
var opLRN = &Op{
	Type: "LRN", Kind: Joint,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x, y := n.Input[0], n.Output[0]
		c, span := b.Shape(x)[1], n.Int("size", 1)
		alpha, beta := n.Float("alpha", 1e-4), n.Float("beta", 0.75)
		band := alloc[float32](b, c, c) // [from, to]
		back := alloc[float32](b, c, c)
		for i := range c {
			for j := max(0, i-(span-1)/2); j <= min(c-1, i+span/2); j++ {
				band[j*c+i], back[i*c+j] = 1, 1
			}
		}
		s := b.along(b.Mul(x, x), 1, b.Floats(band, c, c))
		s = b.Add(b.Mul(s, b.Scalar(alpha/float32(span))), b.Scalar(n.Float("bias", 1)))
		direct := b.Mul(dy[0], b.binary("Pow", s, b.Scalar(-beta)))
		through := b.along(b.Div(b.Mul(dy[0], y), s), 1, b.Floats(back, c, c))
		through = b.Mul(b.Mul(x, through), b.Scalar(2*alpha*beta/float32(span)))
		return []Value{b.Sub(direct, through)}
	},
	Examples: []Example{
		{Name: "AlexNet's, stronger", Inputs: [][]int{{2, 7, 3, 3}}, Attrs: []onnx.Attr{
			{Name: "size", Value: 5}, {Name: "alpha", Value: float32(0.5)},
			{Name: "bias", Value: float32(2)}}},
		{Name: "another power", Inputs: [][]int{{2, 5, 3, 3}}, Attrs: []onnx.Attr{
			{Name: "size", Value: 3}, {Name: "alpha", Value: float32(0.5)},
			{Name: "beta", Value: float32(0.5)}}},
	},
}
