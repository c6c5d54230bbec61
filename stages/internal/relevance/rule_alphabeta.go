package relevance

import "fmt"

// AlphaBeta is the αβ-rule: positive and negative contributions are distributed separately, Rᵢ = Σⱼ
// (α·(xᵢwᵢⱼ)⁺/Σ(xw)⁺ − β·(xᵢwᵢⱼ)⁻/Σ(xw)⁻)·Rⱼ; each sum includes the bias of its sign, if biases get
// relevance, and the stabiliser. α − β = 1 conserves relevance. Bach et al. 2015, equation 60. α = 1, β = 0
// is the z⁺-rule of Montavon et al., "Explaining Nonlinear Classification Decisions with Deep Taylor
// Decomposition", 2017.
//
// With the positive and negative parts of x, (xw)⁺ = x⁺w⁺ + x⁻w⁻. If x is known to be non-negative only the
// first term is emitted.
func AlphaBeta(alpha, beta, stabiliser float32) LayerRule {
	name := fmt.Sprintf("alpha-beta(%g, %g, %g)", alpha, beta, stabiliser)
	return LayerRule{name, func(b *Builder, l layer, r Value) Value {
		wp, wn := b.positivePart(l.w()), b.negativePart(l.w())
		x := b.halvesOf(l.x())
		var out Value
		if alpha != 0 {
			out = x.through(b, l, b.scaled(r, alpha), wp, wn, b.positiveBias(l.b0()), stabiliser, atLeast0)
		}
		if beta != 0 {
			lost := x.through(b, l, b.scaled(r, -beta), wn, wp, b.negativeBias(l.b0()), stabiliser, atMost0)
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

// CaptumZPlus is captum's rule for α = 1 and β = 0: it clamps weights, but neither data nor bias.
func CaptumZPlus(stabiliser float32) LayerRule {
	return LayerRule{fmt.Sprintf("captum-alpha1-beta0(%g)", stabiliser),
		func(b *Builder, l layer, r Value) Value {
			c := l.with(b, l.x(), b.positivePart(l.w()), l.b0())
			s := b.quotient(r, c.Output[0], stabiliser, anySign)
			l.recordBias(b, l.b0(), s)
			return l.contribution(b, c, s)
		}}
}

// A halves holds the positive and negative parts of a value, the latter "" if it is zero.
type halves struct{ positive, negative Value }

// halvesOf emits the parts of x.
func (b *Builder) halvesOf(x Value) halves {
	if !b.bothHalves && b.nonNegative(x) {
		return halves{x, ""}
	}
	return halves{b.positivePart(x), b.negativePart(x)}
}

// through emits the relevance by the products x⁺·wp and x⁻·wn, whose sums with the bias have the sign known.
func (x halves) through(b *Builder, l layer, r, wp, wn, bias Value, stabiliser float32, known sign) Value {
	cp := l.with(b, x.positive, wp, bias)
	z, cn := cp.Output[0], cp
	if x.negative != "" {
		cn = l.with(b, x.negative, wn, "")
		z = b.Add(z, cn.Output[0])
	}
	s := b.quotient(r, z, stabiliser, known)
	l.recordBias(b, bias, s)
	out := l.contribution(b, cp, s)
	if x.negative != "" {
		out = b.Add(out, l.contribution(b, cn, s))
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
