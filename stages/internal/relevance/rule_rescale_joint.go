package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// normalised treats LayerNormalization as a composition: with c = x − μ, the variance v = Σc²/N and r =
// 1/√(v+ε), y = γ·c·r + β. So for g = γ·m, with multipliers m,
//
//	Δv = 2/N·Σ c̄Δc
//	Δr/Δv = −(r·r_ref)²/(r + r_ref)
//	m_c = g·r̄ + c̄·(Δr/Δv)·2/N·Σ g·c̄
//	m_x = m_c − Σm_c/N.
func (x rescaling) normalised(b *Builder, op *Op, n onnx.Node, m []Value) []Value {
	shape := b.Shape(n.Input[0])
	axis := b.axis(n, -1, len(shape))
	var axes []int
	items := 1
	for i := axis; i < len(shape); i++ {
		axes, items = append(axes, i), items*shape[i]
	}
	other := b.Copy(n, map[int]Value{0: x.of(n.Input[0])})
	for _, v := range other.Output {
		t := b.g.Types[v]
		t.Shape = slices.Clone(t.Shape)
		copy(t.Shape[:axis], b.Shape(other.Input[0]))
		b.g.Types[v] = t
	}
	centre := b.Sub(n.Input[0], n.Output[1])
	centreThere := b.Sub(other.Input[0], other.Output[1])
	r, s := n.Output[2], other.Output[2]
	half, per := b.Scalar(0.5), b.Scalar(1/float32(items))
	mean := b.Mul(b.Add(centre, centreThere), half)
	both := b.Mul(r, s)
	slope := b.Unary("Neg", b.Div(b.Mul(both, both), b.Add(r, s)))
	g := b.Mul(m[0], n.Input[1])
	along := b.Mul(b.Mul(b.Sum(b.Mul(g, mean), axes, true), slope), b.Mul(per, b.Scalar(2)))
	of := b.Add(b.Mul(g, b.Mul(b.Add(r, s), half)), b.Mul(mean, along))
	return []Value{b.Sub(of, b.Mul(b.Sum(of, axes, true), per))}
}

// softmax treats it as a composition, y = exp(x − L) with L = log s and s = Σ exp x, of element-wise
// functions and a sum:
//
//	ρ = Δy/(Δx − ΔL)
//	m_x = m·ρ − Δexp(x)/Δx·ΔL/Δs·Σ m·ρ.
//
// The exponents of input and reference in s are shifted equally, to avoid overflow.
func (x rescaling) softmax(b *Builder, _ *Op, n onnx.Node, m []Value) []Value {
	v := n.Input[0]
	shape := b.Shape(v)
	axes := []int{b.axis(n, -1, len(shape))}
	greatest := func(v Value) Value {
		return b.Emit("ReduceMax", kept(b.Shape(v), axes), []Value{v},
			onnx.Attr{Name: "axes", Value: []int64{int64(axes[0])}})
	}
	exp := func(v, shift Value) Value { return b.Unary("Exp", b.Sub(v, shift)) }
	most, mostThere := greatest(v), greatest(x.of(v))
	// L is the largest element minus its LogSoftmax. ONNX Runtime's Log isn't deterministic, as it depends on
	// memory alignment; its LogSoftmax is.
	log := func(v, top Value) Value {
		if b.lacks("LogSoftmax") {
			return b.Add(top, b.Unary("Log", b.Sum(exp(v, top), axes, true)))
		}
		shares := b.Emit("LogSoftmax", b.Shape(v), []Value{v}, onnx.Attr{Name: "axis", Value: axes[0]})
		return b.Sub(top, greatest(shares))
	}
	rise := b.Sub(log(v, most), log(x.of(v), mostThere)) // ΔL
	y := n.Output[0]
	away := b.Sub(x.difference(b, v), rise)
	rho := b.Mul(m[0], b.quotientOr(x.difference(b, y), away, y, b.Scalar(minDifference)))

	shift := b.Emit("Max", kept(shape, axes), []Value{most, mostThere})
	e, f := exp(v, shift), exp(x.of(v), shift)
	s, t := b.Sum(e, axes, true), b.Sum(f, axes, true)
	// If s hardly differs, 1/s at the midpoint is more accurate.
	both := b.Add(s, t)
	per := b.quotientOr(rise, b.Sub(s, t), b.Div(b.Scalar(2), both), b.Mul(both, b.Scalar(1e-3)))
	share := b.Mul(x.over(b, b.Sub(e, f), v, e), per)
	return []Value{b.Sub(rho, b.Mul(share, b.Sum(rho, axes, true)))}
}

// softmaxOfficial is Δy/Δx minus the mean along the axis.
func (x rescaling) softmaxOfficial(b *Builder, op *Op, n onnx.Node, m []Value) []Value {
	v := n.Input[0]
	shape := b.Shape(v)
	axis := b.axis(n, -1, len(shape))
	y := x.over(b, b.Mul(m[0], x.difference(b, n.Output[0])), v, op.VJP(b, n, m)[0])
	mean := b.Mul(b.Sum(y, []int{axis}, true), b.Scalar(1/float32(shape[axis])))
	return []Value{b.Sub(y, mean)}
}
