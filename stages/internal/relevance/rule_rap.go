package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// RAP is relative attributing propagation: at every layer positive and negative contributions propagate
// relevance with equal importance, and a shift of all inputs with relevance restores the sum. Nam et al.,
// "Relative Attributing Propagation", AAAI 2020; the rules are those of its official code.
//
// With u for x⁺ and then for |x⁻|, Z₁ = u·w⁺ and Z₂ = −u·w⁻, the positive and negative parts R⁺ and R⁻ of the
// relevance, and a/b = 0 if b = 0, the inputs get
//
//	C = u·[w⁺ᵀ(R⁺/Z₁) − w⁻ᵀ(R/(Z₁ + Z₂)) − w⁻ᵀ(R⁻/Z₂)]
//
// in a Conv; in other layers w⁺ᵀ(R⁻/Z₁) replaces the last term. Then the excess ΣC − ΣR is subtracted in
// equal parts from the non-zero elements of C; the sums are over an image in a Conv, over a row in other
// layers. If x has both signs, each part preserves the sum, so that it doubles. Biases get no relevance.
//
// The layer at which propagation starts uses [rapFirst] instead, layers that read the image the zᴮ-rule
// between the image's extremes.
func RAP() LRP { return rap(LayerRule{"rap", rapLayer}) }

// RAPPaper is RAP as described by Vukadin et al. (ACM TIST 2024): the two passes are weighted by their shares
// of the sum of magnitudes, Z₁/(Z₁ + Z₂) and Z₂/(Z₁ + Z₂).
func RAPPaper() LRP { return rap(LayerRule{"rap-paper", rapPaperLayer}) }

func rap(rule LayerRule) LRP {
	first := LayerRule{rule.Name + "-dense", func(b *Builder, l layer, r Value) Value {
		if l.data != 0 || l.n.OpType == "Einsum" {
			b.Fail(l.n, "relative attributing propagation needs a layer's weights as right operand")
			return ""
		}
		if b.startsAt(l.n.Output[0]) {
			return rapFirst(b, l, r)
		}
		return rule.back(b, l, r)
	}}
	return LRP{
		Conv: rule, Dense: first, First: ImageBox(1e-9),
		Norm: NormPassed, Gates: GatesConstant,
	}
}

// rapLayer is the rule of all layers except the first and the last.
func rapLayer(b *Builder, l layer, r Value) Value {
	positive, negative := b.positivePart(r), b.negativePart(r)
	return b.rapHalves(l, r, func(z1, z2 Value) (s1, s2 Value) {
		s1 = b.quotient(positive, z1, 0, atLeast0)
		s2 = b.quotient(r, b.Add(z1, z2), 0, atLeast0)
		if l.conv() {
			s2 = b.Add(s2, b.quotient(negative, z2, 0, atLeast0))
		} else {
			s1 = b.quotient(r, z1, 0, atLeast0)
		}
		return s1, s2
	})
}

// rapPaperLayer is that of [RAPPaper]: R·Z₁/(Z₁+Z₂) by the shares of Z₁, and the same with Z₂.
func rapPaperLayer(b *Builder, l layer, r Value) Value {
	return b.rapHalves(l, r, func(z1, z2 Value) (s1, s2 Value) {
		s := b.quotient(r, b.Add(z1, z2), 0, atLeast0)
		return s, s
	})
}

func (l layer) conv() bool { return l.n.OpType == "Conv" || l.n.OpType == "ConvTranspose" }

// rapHalves emits u·(w⁺ᵀs₁ − w⁻ᵀs₂), shifted, for both parts u of the data: parts returns the s of a part,
// given its copies' outputs.
func (b *Builder) rapHalves(l layer, r Value, parts func(z1, z2 Value) (s1, s2 Value)) Value {
	wp, wn := b.positivePart(l.w()), b.Unary("Neg", b.negativePart(l.w()))
	x := b.halvesOf(l.x())
	halves := []Value{x.positive}
	if x.negative != "" {
		halves = append(halves, b.Unary("Neg", x.negative))
	}
	var out Value
	for _, u := range halves {
		up, down := l.with(b, u, wp, ""), l.with(b, u, wn, "")
		s1, s2 := parts(up.Output[0], down.Output[0])
		c := b.Mul(u, b.Add(l.adjoint(b, up, s1), l.adjoint(b, down, s2)))
		out = b.plus(out, b.shifted(l, c, r))
	}
	return out
}

// shifted emits c minus (Σc − Σr)/n at the n non-zero elements.
func (b *Builder) shifted(l layer, c, r Value) Value {
	some := b.step(b.Unary("Abs", c), 0)
	over := func(v Value) Value { return b.Sum(v, l.summed(b, v), true) }
	n := over(some)
	shift := b.quotient(b.Sub(over(c), over(r)), n, 0, atLeast0)
	return b.Sub(c, b.Mul(some, shift))
}

// summed returns the axes of the sums of [RAP]: those of an image, or of a row.
func (l layer) summed(b *Builder, v Value) []int {
	rank := len(b.Shape(v))
	if !l.conv() {
		return []int{rank - 1}
	}
	var axes []int
	for i := 1; i < rank; i++ {
		axes = append(axes, i)
	}
	return axes
}

// rapFirst is the rule of the layer at which propagation starts, given the weight of each class: the
// contributions to the classes, plus each bias distributed in the ratio of the positive and negative parts of
// all contributions; then their magnitudes, scaled to the same sum, the explained logit.
func rapFirst(b *Builder, l layer, counts Value) Value {
	wp, wn := b.positivePart(l.w()), b.negativePart(l.w())
	xp, xn := b.positivePart(l.x()), b.negativePart(l.x())
	if b.nonNegative(l.x()) {
		xp, xn = l.x(), ""
	}
	c := l.contribution(b, l.with(b, l.x(), l.w(), ""), counts)
	if l.bias >= 0 {
		pp, pn := l.with(b, xp, wp, ""), l.with(b, xp, wn, "")
		plus, minus := pp.Output[0], pn.Output[0]
		if xn != "" {
			plus = b.Add(plus, l.with(b, xn, wn, "").Output[0])
			minus = b.Add(minus, l.with(b, xn, wp, "").Output[0])
		}
		row := l.summed(b, plus)
		sum := func(v Value) Value { return b.Sum(b.Mul(v, counts), row, true) }
		pos, neg := sum(plus), sum(minus)
		both := b.Add(pos, neg)
		bias := b.Mul(b.added(l, l.n.Input[l.bias]), counts)
		share := func(part Value, through onnx.Node, known sign) Value {
			s := b.quotient(b.Mul(bias, b.quotient(part, both, 0, anySign)), through.Output[0], 0, known)
			return l.contribution(b, through, s)
		}
		c = b.Add(c, b.Add(share(pos, pp, atLeast0), share(neg, pn, atMost0)))
	}
	row := l.summed(b, c)
	size := b.Unary("Abs", c)
	return b.Mul(size, b.quotient(b.Sum(c, row, true), b.Sum(size, row, true), 0, atLeast0))
}
