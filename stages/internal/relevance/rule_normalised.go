package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// normalised is the rule of LayerNormalization and InstanceNormalization, y = γ·(x − μ)/σ + β with constant
// σ: an affine map of x, whose inputs get relevance by their contributions to y, Rᵢ = xᵢ·(gᵢ − mean g) with g
// = γ/σ · R/(y + ε). Ali et al., "XAI for Transformers", ICML 2022, section 4.2, and the code of AttnLRP. The
// mean μ is part of the map: if y passed all its relevance to x, an x near 0 with a large y would get more
// relevance than its contribution, and the sum that computes x would divide that by x.
//
// A normalisation written as single operators gives the same result.
func (p LRP) normalised(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
	x, y, scale := n.Input[0], n.Output[0], b.scaleOf(n)
	mean, factor := b.statistics(n)
	if !p.Bias {
		y = b.Mul(b.Mul(b.Sub(x, mean), factor), scale)
	}
	s := b.quotient(r[0], y, p.Stabiliser, anySign)
	g := b.Mul(b.Mul(s, scale), factor)
	part := b.Mul(x, b.Sub(g, b.average(g, b.Shape(mean))))
	if b.audited && p.Bias {
		b.recordConstant(b.Sub(b.Mul(y, s), part))
	}
	return []Value{part, "", ""}
}

// average emits the means of x over the axes that have size 1 in shape, keeping them.
func (b *Builder) average(x Value, shape []int) Value {
	var axes []int
	for i, d := range b.Shape(x) {
		if d != shape[i] {
			axes = append(axes, i)
		}
	}
	return b.scaled(b.Sum(x, axes, true), 1/float32(count(b.Shape(x), axes)))
}
