package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// RAP is relative attributing propagation: at every layer what is positive and what is negative of the
// contributions carry relevance on as important, and a shift of all inputs that got some brings the sum back
// to what arrived. Nam et al., "Relative Attributing Propagation", AAAI 2020; the rules are those of its
// official code.
//
// With u for x⁺ and then for |x⁻|, Z₁ = u·w⁺ and Z₂ = −u·w⁻, R⁺ and R⁻ for what is positive and negative of
// what arrives, and a/b = 0 where b = 0, the inputs get
//
//	C = u·[w⁺ᵀ(R⁺/Z₁) − w⁻ᵀ(R/(Z₁ + Z₂)) − w⁻ᵀ(R⁻/Z₂)]
//
// in a Conv; in other layers w⁺ᵀ(R⁻/Z₁) is in the place of the last term. Then the excess ΣC − ΣR is
// subtracted from the elements of C that aren't 0, in equal parts; the sums are over an image in a Conv, over
// a row in other layers. Where x has both signs, either half keeps the sum, so that it doubles. Biases get
// nothing.
//
// The layer where the walk begins has [rapFirst] instead, layers that read the image the zᴮ-rule between the
// image's extremes.
func RAP() LRP { return rap(LayerRule{"rap", rapLayer}) }

// RAPPaper is RAP as Vukadin et al. (ACM TIST 2024) describe it: the two passes are weighted by their shares
// of the sum of magnitudes, Z₁/(Z₁ + Z₂) and Z₂/(Z₁ + Z₂).
func RAPPaper() LRP { return rap(LayerRule{"rap-paper", rapPaperLayer}) }

func rap(rule LayerRule) LRP {
	first := LayerRule{rule.Name + "-dense", func(b *Builder, l layer, r Value) Value {
		if l.data != 0 || l.n.OpType == "Einsum" {
			b.Fail(l.n, "relative attributing propagation wants the weights of a layer on its right")
			return ""
		}
		if b.beginsAt(l.n.Output[0]) {
			return rapFirst(b, l, r)
		}
		return rule.back(b, l, r)
	}}
	return LRP{
		Conv: rule, Dense: first, First: ImageBox(1e-9),
		Norm: NormPassed, Gates: GatesConstant,
	}
}

// rapLayer is the rule of all layers but those at the ends.
func rapLayer(b *Builder, l layer, r Value) Value {
	positive, negative := b.above(r), b.below(r)
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

// rapHalves emits u·(w⁺ᵀs₁ − w⁻ᵀs₂), shifted, for both halves u of the data: parts returns the s of a half,
// given its copies' outputs.
func (b *Builder) rapHalves(l layer, r Value, parts func(z1, z2 Value) (s1, s2 Value)) Value {
	wp, wn := b.above(l.w()), b.Unary("Neg", b.below(l.w()))
	x := b.signed(l.x())
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

// shifted emits c less (Σc − Σr)/n at the n elements that aren't 0.
func (b *Builder) shifted(l layer, c, r Value) Value {
	some := b.steep(b.Unary("Abs", c), 0)
	over := func(v Value) Value { return b.Sum(v, l.summed(b, v), true) }
	n := over(some)
	shift := b.quotient(b.Sub(over(c), over(r)), n, 0, atLeast0)
	return b.Sub(c, b.Mul(some, shift))
}

// summed returns the axes that the sums of [RAP] are over: those of an image, or of a row.
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

// rapFirst is the rule of the layer where the walk begins, given how much each class counts: the
// contributions to the classes, with the bias of each shared in the ratio of what is positive and what is
// negative of all, and then each contribution's magnitude, scaled to the same sum, which is the explained
// logit.
func rapFirst(b *Builder, l layer, counts Value) Value {
	wp, wn := b.above(l.w()), b.below(l.w())
	xp, xn := b.above(l.x()), b.below(l.x())
	if b.nonNegative(l.x()) {
		xp, xn = l.x(), ""
	}
	c := l.pull(b, l.with(b, l.x(), l.w(), ""), counts)
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
			return l.pull(b, through, s)
		}
		c = b.Add(c, b.Add(share(pos, pp, atLeast0), share(neg, pn, atMost0)))
	}
	row := l.summed(b, c)
	size := b.Unary("Abs", c)
	return b.Mul(size, b.quotient(b.Sum(c, row, true), b.Sum(size, row, true), 0, atLeast0))
}
