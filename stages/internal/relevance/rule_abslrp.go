package relevance

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// AbsLRP is relative absolute magnitude propagation: an input gets the positive part of its contribution to
// an output, relative to the magnitude of that output,
//
//	Rᵢ = Σⱼ (xᵢwᵢⱼ)⁺ / (|hⱼ| + ε) · Rⱼ, hⱼ with the bias, ε = 1e-9.
//
// Vukadin, Afrić, Šilić and Delač, ACM TIST 2024, equation 12. For a non-linear function h the paper's
// algorithm 1 has x·∂(h(x) + |h|(|x|))/∂x/2 in place of x·w, where |h| is h with the magnitudes of its
// weights. (The algorithm as printed gives twice equation 12.)
type AbsLRP struct {
	Variant  AbsLRPVariant
	MaxPool  MaxPoolRule
	Ablation Ablation

	everywhere bool // for tests: apply all scales of the definition, and no others
}

// An AbsLRPVariant is an interpretation of the method.
type AbsLRPVariant string

const (
	// AbsLRPPaper is the text of the paper. The scale of relevance is arbitrary, but the same for all of an
	// image.
	AbsLRPPaper AbsLRPVariant = "paper"
	// AbsLRPOfficial is the code of December 2024: the relevance that each module passes to each of its
	// inputs is scaled per image to a sum of magnitudes of 1.
	AbsLRPOfficial AbsLRPVariant = "official"
	// AbsLRPJanuary is the code of January 2024: positive and negative relevance are propagated separately,
	// and each module preserves both sums.
	AbsLRPJanuary AbsLRPVariant = "official-2024-01"
)

// A MaxPoolRule selects whether a MaxPool divides by its output, so that all relevance goes to the largest
// element, or multiplies by that element.
type MaxPoolRule string

const (
	// MaxPoolAuto divides, except in the official variant for models without a sum of branches, such as VGG.
	MaxPoolAuto     MaxPoolRule = "auto"
	MaxPoolDivide   MaxPoolRule = "divide"
	MaxPoolMultiply MaxPoolRule = "multiply"
)

// An Ablation selects the part of attention that propagates relevance.
type Ablation string

const (
	AblationNone        Ablation = "none"
	AblationValues      Ablation = "values-only"       // only the values
	AblationQueriesKeys Ablation = "queries-keys-only" // only queries and keys
)

// Policy returns the policy. BatchNormalization isn't folded: it has its own rule.
func (a AbsLRP) Policy() Policy {
	name := fmt.Sprintf("abslrp %s, max-pool %s, ablation %s", a.Variant, a.MaxPool, a.Ablation)
	if a.everywhere {
		name += ", scaled everywhere"
	}
	return Policy{
		Name:    name,
		Grouped: true, Apart: true,
		Cases: []Case{
			{answer, a.answer},
			{Type("LayerNormalization", "InstanceNormalization"), a.normalised},
			{Type("BatchNormalization"), a.batchNormalised},
			{Type("Softmax"), a.softmax},
			{rescales, a.pass},
			{OfKind(Move), a.move},
			{OfKind(Bilinear), a.product},
			{OfKind(Sum), a.sum},
			{OfKind(Affine), a.affine},
			{Type("Relu"), a.rectified},
			{Type("MaxPool"), a.maxPool},
			{Type("Div"), a.ratio},
			{OfKind(Activation), a.activated},
			{func(*Builder, *Op, onnx.Node) bool { return true }, a.other},
		},
	}
}

// answer matches the Softmax or LogSoftmax at the output, where relevance starts.
func answer(b *Builder, _ *Op, n onnx.Node) bool {
	if n.OpType != "Softmax" && n.OpType != "LogSoftmax" {
		return false
	}
	for _, v := range b.seeds {
		if v == n.Output[0] {
			return true
		}
	}
	return false
}

// answer moves relevance that starts at probabilities to the class scores before them. The explained value is
// the logarithm of a probability, whose derivative divides by it.
func (a AbsLRP) answer(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
	if n.OpType == "LogSoftmax" {
		return r
	}
	return []Value{b.Mul(r[0], n.Output[0])}
}

// affine applies equation 12. The code of January 2024 has separate layers for queries, keys and values, each
// of which preserves its sums, where the model has a single layer.
func (a AbsLRP) affine(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	if a.Variant != AbsLRPJanuary || !b.makesHeads(n) {
		return a.linear(b, op, n, r[0])
	}
	columns := b.Shape(n.Output[0])[len(b.Shape(n.Output[0]))-1]
	var back []Value
	for third := range 3 {
		mask := make([]float32, columns)
		for i := third * columns / 3; i < (third+1)*columns/3; i++ {
			mask[i] = 1
		}
		part := a.linear(b, op, n, b.Mul(r[0], b.Floats(mask, columns)))
		if third == 0 {
			back = part
			continue
		}
		back[0] = b.plus(back[0], part[0])
	}
	return back
}

// linear applies equation 12 to an affine node with relevance r.
func (a AbsLRP) linear(b *Builder, op *Op, n onnx.Node, r Value) []Value {
	return a.propagate(b, n, r, n.Output[0], func(s Value) []Value {
		switch {
		case n.OpType == "Neg":
			return []Value{b.Mul(b.positivePart(n.Output[0]), s)}
		case op.Role(1) == Weight && n.In(1) != "":
			if !b.flows[n.Input[0]] || b.dynamic(n.Input[1]) {
				return a.shares(b, op, n, s)
			}
			return []Value{b.positiveShare(op, n, 0, 1, s)}
		}
		// pools and means have no negative weights
		return []Value{b.Mul(b.positivePartOf(n.Input[0]), op.VJP(b, n, []Value{s})[0])}
	})
}

// shares applies equation 12 to each factor of a product, with the other one as its weights.
func (a AbsLRP) shares(b *Builder, op *Op, n onnx.Node, s Value) []Value {
	back := make([]Value, len(n.Input))
	for i := range min(2, len(n.Input)) {
		if b.flows[n.Input[i]] {
			back[i] = b.positiveShare(op, n, i, 1-i, s)
		}
	}
	return back
}

// positiveShare emits Σ (x·w)⁺·s for input i, x, and its other operand o, w. With the positive and negative
// parts of x, (x·w)⁺ = x⁺w⁺ + x⁻w⁻: both summands are copies of the node with a part of w.
func (b *Builder) positiveShare(op *Op, n onnx.Node, i, o int, s Value) Value {
	x, w := n.Input[i], n.Input[o]
	like, unlike := b.positivePartOf(w), ""
	if like != w {
		unlike = b.negativePart(w)
	}
	if n.Float("alpha", 1) < 0 { // the factor of a Gemm
		like, unlike = b.negativePart(w), b.positivePart(w)
	}
	pull := func(x, w Value) Value {
		return b.Mul(x, op.VJP(b, b.Copy(n, map[int]Value{o: w}), []Value{s})[i])
	}
	if b.knownNonNegative(x) {
		return pull(x, like)
	}
	share := pull(b.positivePart(x), like)
	if unlike == "" {
		return share
	}
	return b.Add(share, pull(b.negativePart(x), unlike))
}

// knownNonNegative is nonNegative, except for tests that need both parts emitted.
func (b *Builder) knownNonNegative(x Value) bool { return !b.bothHalves && b.nonNegative(x) }

// positivePartOf emits x⁺, which is x if it is known to be non-negative.
func (b *Builder) positivePartOf(x Value) Value {
	if b.knownNonNegative(x) {
		return x
	}
	return b.positivePart(x)
}

// literal emits algorithm 1 for any node: the mean of x·VJP(s) and |x|·VJP(s) of the copy at the magnitudes
// of all operands.
func (b *Builder) literal(op *Op, n onnx.Node, s Value) []Value {
	with := map[int]Value{}
	for i, v := range n.Input {
		if v != "" && op.Role(i) != Config && !b.knownNonNegative(v) {
			with[i] = b.Unary("Abs", v)
		}
	}
	back := op.VJP(b, n, []Value{s})
	var magnitudes []Value
	if len(with) > 0 {
		c := b.Copy(n, with)
		if op.Prepare != nil {
			op.Prepare(b, c)
		}
		magnitudes = op.VJP(b, c, []Value{s})
	}
	for i, v := range back {
		if v == "" || !b.flows[n.Input[i]] {
			back[i] = ""
			continue
		}
		back[i] = b.Mul(n.Input[i], v)
		if len(with) > 0 {
			x := n.Input[i]
			if m, ok := with[i]; ok {
				x = m
			}
			back[i] = b.scaled(b.Add(back[i], b.Mul(x, magnitudes[i])), 0.5)
		}
	}
	return back
}

// other applies algorithm 1.
func (a AbsLRP) other(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	return a.propagate(b, n, r[0], n.Output[0], func(s Value) []Value { return b.literal(op, n, s) })
}
