package relevance

import "fmt"

// Gamma is the γ-rule: contributions with the sign of the output are weighted by 1 + γ. For zⱼ > 0, Rᵢ = Σⱼ
// (xᵢwᵢⱼ + γ(xᵢwᵢⱼ)⁺)/(zⱼ + γΣ(xw)⁺)·Rⱼ, and for zⱼ < 0 the same with ⁻; zⱼ = 0 passes no relevance. The bias
// is weighted likewise. Montavon et al. 2019, section 10.2.3, extended to data of any sign as in Zennit.
func Gamma(gamma, stabiliser float32) LayerRule {
	return LayerRule{fmt.Sprintf("gamma(%g, %g)", gamma, stabiliser),
		func(b *Builder, l layer, r Value) Value {
			more := func(v, part Value) Value { return b.Add(v, b.Mul(part, b.Scalar(gamma))) }
			wp, wn := more(l.w(), b.positivePart(l.w())), more(l.w(), b.negativePart(l.w()))
			var bp, bn Value
			if bias := l.b0(); bias != "" {
				bp, bn = more(bias, b.positivePart(bias)), more(bias, b.negativePart(bias))
			}
			x, z := b.halvesOf(l.x()), l.output(b)
			var adjoints [2]Value // of x⁺ and x⁻
			for _, side := range []struct {
				own, other, bias Value
				mask             Value
				known            sign
			}{
				{wp, wn, bp, b.step(z, 0), atLeast0},
				{wn, wp, bn, b.Sub(b.Scalar(1), b.step(z, 1)), atMost0},
			} {
				cp := l.with(b, x.positive, side.own, side.bias)
				sum, cn := cp.Output[0], cp
				if x.negative != "" {
					cn = l.with(b, x.negative, side.other, "")
					sum = b.Add(sum, cn.Output[0])
				}
				// Outputs of the other sign pass no relevance; the sign of their sums is arbitrary.
				if side.known == atLeast0 {
					sum = b.positivePart(sum)
				} else {
					sum = b.negativePart(sum)
				}
				s := b.quotient(b.Mul(r, side.mask), sum, stabiliser, side.known)
				l.recordBias(b, side.bias, s)
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

// plus emits x + y, where "" is zero.
func (b *Builder) plus(x, y Value) Value {
	switch {
	case x == "":
		return y
	case y == "":
		return x
	}
	return b.Add(x, y)
}
