package relevance

import "fmt"

// AlphaBeta is the αβ-rule: what is positive and what is negative of the products share apart, Rᵢ = Σⱼ
// (α·(xᵢwᵢⱼ)⁺/Σ(xw)⁺ − β·(xᵢwᵢⱼ)⁻/Σ(xw)⁻)·Rⱼ, each sum with the bias of its sign if biases count, and with
// the stabiliser. α − β = 1 keeps the sum of relevance. Bach et al. 2015, equation 60. α = 1, β = 0 is the
// z⁺-rule of Montavon et al., "Explaining Nonlinear Classification Decisions with Deep Taylor Decomposition",
// 2017.
//
// With x⁺ and x⁻ for what is positive and negative of x, (xw)⁺ = x⁺w⁺ + x⁻w⁻. Where x is known not to be
// negative the second half isn't written.
func AlphaBeta(alpha, beta, stabiliser float32) LayerRule {
	name := fmt.Sprintf("alpha-beta(%g, %g, %g)", alpha, beta, stabiliser)
	return LayerRule{name, func(b *Builder, l layer, r Value) Value {
		wp, wn := b.above(l.w()), b.below(l.w())
		x := b.signed(l.x())
		var out Value
		if alpha != 0 {
			out = x.through(b, l, b.scaled(r, alpha), wp, wn, b.aboveOf(l.b0()), stabiliser, atLeast0)
		}
		if beta != 0 {
			lost := x.through(b, l, b.scaled(r, -beta), wn, wp, b.belowOf(l.b0()), stabiliser, atMost0)
			if out == "" {
				return lost
			}
			out = b.Add(out, lost)
		}
		return out
	}}
}

// ZPlus is the z⁺-rule, [AlphaBeta] with α = 1 and β = 0.
func ZPlus(stabiliser float32) LayerRule { return AlphaBeta(1, 0, stabiliser) }

// CaptumZPlus is what captum calls the rule of α = 1 and β = 0: weights are clamped, and neither data nor
// bias.
func CaptumZPlus(stabiliser float32) LayerRule {
	return LayerRule{fmt.Sprintf("captum-alpha1-beta0(%g)", stabiliser),
		func(b *Builder, l layer, r Value) Value {
			c := l.with(b, l.x(), b.above(l.w()), l.b0())
			s := b.quotient(r, c.Output[0], stabiliser, anySign)
			l.toBias(b, l.b0(), s)
			return l.pull(b, c, s)
		}}
}

// A halves is what is positive and what is negative of a value, the second "" if there's nothing.
type halves struct{ positive, negative Value }

// signed emits the halves of x.
func (b *Builder) signed(x Value) halves {
	if !b.bothHalves && b.nonNegative(x) {
		return halves{x, ""}
	}
	return halves{b.above(x), b.below(x)}
}

// through emits what arrives by the products x⁺·wp and x⁻·wn alone, whose sums with the bias have the sign
// known.
func (x halves) through(b *Builder, l layer, r, wp, wn, bias Value, stabiliser float32, known sign) Value {
	cp := l.with(b, x.positive, wp, bias)
	z, cn := cp.Output[0], cp
	if x.negative != "" {
		cn = l.with(b, x.negative, wn, "")
		z = b.Add(z, cn.Output[0])
	}
	s := b.quotient(r, z, stabiliser, known)
	l.toBias(b, bias, s)
	out := l.pull(b, cp, s)
	if x.negative != "" {
		out = b.Add(out, l.pull(b, cn, s))
	}
	return out
}

// scaled emits r·f.
func (b *Builder) scaled(r Value, f float32) Value {
	if f == 1 {
		return r
	}
	return b.Mul(r, b.Scalar(f))
}
