package relevance

import "fmt"

// Gamma is the γ-rule: what has the sign of the output counts more by the factor 1 + γ. Where zⱼ > 0, Rᵢ = Σⱼ
// (xᵢwᵢⱼ + γ(xᵢwᵢⱼ)⁺)/(zⱼ + γΣ(xw)⁺)·Rⱼ, and with ⁻ for ⁺ where zⱼ < 0; a zⱼ that is 0 passes nothing on. The
// bias counts the same way. Montavon et al. 2019, section 10.2.3, for data of any sign as Zennit has it.
func Gamma(gamma, stabiliser float32) LayerRule {
	return LayerRule{fmt.Sprintf("gamma(%g, %g)", gamma, stabiliser),
		func(b *Builder, l layer, r Value) Value {
			more := func(v, part Value) Value { return b.Add(v, b.Mul(part, b.Scalar(gamma))) }
			wp, wn := more(l.w(), b.above(l.w())), more(l.w(), b.below(l.w()))
			var bp, bn Value
			if bias := l.b0(); bias != "" {
				bp, bn = more(bias, b.above(bias)), more(bias, b.below(bias))
			}
			x, z := b.signed(l.x()), l.output(b)
			var adjoints [2]Value // of x⁺, of x⁻
			for _, side := range []struct {
				own, other, bias Value
				mask             Value
				known            sign
			}{
				{wp, wn, bp, b.steep(z, 0), atLeast0},
				{wn, wp, bn, b.Sub(b.Scalar(1), b.steep(z, 1)), atMost0},
			} {
				cp := l.with(b, x.positive, side.own, side.bias)
				sum, cn := cp.Output[0], cp
				if x.negative != "" {
					cn = l.with(b, x.negative, side.other, "")
					sum = b.Add(sum, cn.Output[0])
				}
				// Outputs of the other sign pass nothing on; their sums may have any.
				if side.known == atLeast0 {
					sum = b.above(sum)
				} else {
					sum = b.below(sum)
				}
				s := b.quotient(b.Mul(r, side.mask), sum, stabiliser, side.known)
				l.toBias(b, side.bias, s)
				adjoints[0] = b.plus(adjoints[0], l.adjoint(b, cp, s))
				if x.negative != "" {
					adjoints[1] = b.plus(adjoints[1], l.adjoint(b, cn, s))
				}
			}
			out := b.Mul(x.positive, adjoints[0])
			if x.negative != "" {
				out = b.Add(out, b.Mul(x.negative, adjoints[1]))
			}
			return out
		}}
}

// plus emits x + y; "" stands for nothing.
func (b *Builder) plus(x, y Value) Value {
	switch {
	case x == "":
		return y
	case y == "":
		return x
	}
	return b.Add(x, y)
}
