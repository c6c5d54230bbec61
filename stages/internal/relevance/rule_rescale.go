package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Rescale is the policy of DeepLIFT's Rescale rule. It propagates multipliers, each the change of the output
// over the change of a value between the reference and the input. reference has the values for the reference
// input, as returned by [ReferenceNames]; they broadcast to those for the input. Shrikumar, Greenside and
// Kundaje, "Learning Important Features Through Propagating Activation Differences", ICML 2017, section
// 3.5.1.
//
// With Δ for input minus reference and a bar for the mean of the two, the rules are
//
//   - affine maps, sums and moves: the derivative;
//   - element-wise functions, such as Softplus or GELU: Δy/Δx, or the derivative if
//     |Δx| < 10⁻¹⁰;
//   - a product x·y: ȳ and x̄, since Δ(xy) = ȳΔx + x̄Δy; a quotient as the product of x and 1/y;
//     LayerNormalization and Softmax as compositions;
//   - a pool: with t = max(y, y_ref), t − y_ref goes to the largest element of the input and
//     y − t to that of the reference, over Δx.
//
// The paper has the first two, captum also the pool. The third makes the sum of all multipliers times
// differences equal to the difference of the outputs, which the derivative of a product doesn't. official is
// captum's actual behaviour: a pool after one of the activations known to captum uses the derivative, because
// its hooks overwrite each other, and a Softmax uses Δy/Δx minus the mean along its axis.
func Rescale(official bool, reference map[Value]Value) Policy {
	x := rescaling{reference}
	p := Policy{Name: "rescale", Grouped: true, Cases: []Case{
		{Match: Type("Relu"), Rule: x.relu},
		{Match: elementwise, Rule: x.elementwise},
		{Match: several(Bilinear, Affine), Rule: x.product},
		{Match: Type("Div"), Rule: x.quotient},
		{Match: Type("LayerNormalization"), Rule: x.normalised},
		{Match: Type("Softmax"), Rule: x.softmax},
		{Match: Type("Max", "Min"), Rule: unknown("selects the largest or smallest of several values")},
		{Match: chosen, Rule: Gradient},
		{Match: Type("Where"), Rule: unknown("selects by a condition that may depend on the image")},
		{Match: OfKind(Select), Rule: x.pool},
		{Match: OfKind(Joint, Activation), Rule: unknown("is a non-linear function of several elements")},
	}}
	if official {
		p.Name = "rescale official"
		p.Cases = append([]Case{
			{Match: Type("Softmax"), Rule: x.softmaxOfficial},
			{Match: overwritten, Rule: Gradient},
		}, p.Cases...)
	}
	return p
}

// chosen matches choices between two values that don't depend on the image, as by a mask of attention.
func chosen(b *Builder, _ *Op, n onnx.Node) bool {
	return n.OpType == "Where" && !b.dynamic(n.Input[0])
}

// A rescaling holds the reference values of the model.
type rescaling struct{ reference map[Value]Value }

func (x rescaling) of(v Value) Value {
	if other := x.reference[v]; other != "" {
		return other
	}
	return v
}

// difference emits v minus its reference.
func (x rescaling) difference(b *Builder, v Value) Value { return b.Sub(v, x.of(v)) }

// middle emits the mean of v and its reference.
func (x rescaling) middle(b *Builder, v Value) Value {
	if x.of(v) == v {
		return v
	}
	return b.Mul(b.Add(v, x.of(v)), b.Scalar(0.5))
}

// minDifference is the difference below which a quotient of differences is replaced by the derivative.
const minDifference = 1e-10

// over emits rise/Δv, or derivative if |Δv| < minDifference.
func (x rescaling) over(b *Builder, rise, v, derivative Value) Value {
	return b.quotientOr(rise, x.difference(b, v), derivative, b.Scalar(minDifference))
}

// near emits the masks |Δ| < minDifference and its complement, as steep steps whose height float32 can
// distinguish from 0.
func (b *Builder) near(delta Value) (near, apart Value) {
	size := b.Unary("Abs", delta)
	step := func(slope float32) Value {
		return b.Emit("HardSigmoid", b.Shape(delta), []Value{size}, onnx.Attr{Name: "alpha", Value: slope},
			onnx.Attr{Name: "beta", Value: -slope * minDifference})
	}
	return step(-1e30), step(1e30)
}

// overBounded is over for a derivative that is finite everywhere; it uses masks because Where takes longer
// than all other nodes together.
func (x rescaling) overBounded(b *Builder, rise, v, derivative Value) Value {
	delta := x.difference(b, v)
	near, apart := b.near(delta)
	quotient := b.Mul(b.Div(rise, b.Add(delta, near)), apart)
	return b.Add(quotient, b.Mul(derivative, near))
}

// overSmall is over for a rise that is negligible against the derivative if |Δv| < minDifference: the
// quotient of two sums.
func (x rescaling) overSmall(b *Builder, rise, v, derivative Value) Value {
	delta := x.difference(b, v)
	near, _ := b.near(delta)
	return b.Div(b.Add(rise, b.Mul(derivative, near)), b.Add(delta, near))
}

// quotientOr emits p/q, or other if |q| < least. It doesn't use masks because the excluded value may be
// infinite.
func (b *Builder) quotientOr(p, q, other, least Value) Value {
	shape := b.Shape(q)
	small := b.EmitTyped("Less", onnxpb.TensorProto_BOOL, shape, []Value{b.Unary("Abs", q), least})
	return b.Emit("Where", shape, []Value{small, other, b.Div(p, q)})
}

// elementwise matches element-wise functions of one input.
func elementwise(b *Builder, op *Op, n onnx.Node) bool {
	if op.Kind != Activation && !slices.Contains([]string{"Clip", "Max", "Min"}, n.OpType) {
		return false
	}
	inputs := slices.DeleteFunc(slices.Clone(n.Input), func(v Value) bool { return !b.dynamic(v) })
	return len(inputs) == 1 && slices.Equal(b.Shape(inputs[0]), b.Shape(n.Output[0]))
}

func (x rescaling) elementwise(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	back := op.VJP(b, n, r)
	over := x.overSmall
	if unbounded(b, n) {
		over = x.over
	}
	for i, v := range n.Input {
		if b.dynamic(v) && op.Role(i) != Config && back[i] != "" {
			back[i] = over(b, b.Mul(r[0], x.difference(b, n.Output[0])), v, back[i])
		}
	}
	return back
}

// relu emits (y + y_ref)/(|x| + |x_ref|), which equals Δy/Δx for all signs: 1 if both are positive, 0 if
// neither is, otherwise the share of the positive one in |Δx|. It takes half as many passes and has no
// cancellation; if both are equal it is the derivative.
func (x rescaling) relu(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
	v, y := n.Input[0], n.Output[0]
	// The smallest normal number only decides 0/0.
	there := b.Add(b.Unary("Abs", x.of(v)), b.Scalar(0x1p-126))
	multiplier := b.Div(b.Add(y, x.of(y)), b.Add(b.Unary("Abs", v), there))
	return []Value{b.Mul(r[0], multiplier)}
}

// unbounded reports whether the derivative of an element-wise function may be infinite.
func unbounded(b *Builder, n onnx.Node) bool {
	unbounded := Type("Sqrt", "Log", "Reciprocal", "Pow", "Div")
	if g, ok := b.groups[n.Output[0]]; ok {
		return slices.ContainsFunc(g.members, func(m onnx.Node) bool {
			return unbounded(b, nil, m) && !(m.OpType == "Div" && !b.dynamic(m.In(1)))
		})
	}
	return unbounded(b, nil, n)
}

// product is the derivative at the midpoint: Δ(x·y) = ȳΔx + x̄Δy.
func (x rescaling) product(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	with := map[int]Value{}
	for i, v := range n.Input {
		if b.dynamic(v) {
			with[i] = x.middle(b, v)
		}
	}
	return op.VJP(b, b.Copy(n, with), r)
}

// quotient is the product of x and 1/y, where Δ(1/y)/Δy = −1/(y·y_ref).
func (x rescaling) quotient(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	p, q := n.Input[0], n.Input[1]
	if !b.dynamic(q) {
		return op.VJP(b, n, r)
	}
	one := b.Unary("Reciprocal", q)
	other := one
	if x.of(q) != q {
		other = b.Unary("Reciprocal", x.of(q))
	}
	back := []Value{"", b.Mul(b.Mul(r[0], x.middle(b, p)), b.Unary("Neg", b.Mul(one, other)))}
	if b.dynamic(p) {
		back[0] = b.Unbroadcast(b.Mul(r[0], b.Mul(b.Add(one, other), b.Scalar(0.5))), b.Shape(p))
	}
	back[1] = b.Unbroadcast(back[1], b.Shape(q))
	return back
}

// pool passes the increase of the largest elements to the positions of these elements.
func (x rescaling) pool(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	v := n.Input[0]
	other := b.Copy(n, map[int]Value{0: b.Expand(x.of(v), b.Shape(v)...)})
	y, z := n.Output[0], other.Output[0]
	most := b.Emit("Max", b.Shape(y), []Value{y, z})
	here := op.VJP(b, n, []Value{b.Mul(r[0], b.Sub(most, z))})
	there := op.VJP(b, other, []Value{b.Mul(r[0], b.Sub(y, most))})
	plain := op.VJP(b, n, r[:1])
	if here == nil || there == nil || plain == nil {
		return nil
	}
	return []Value{x.overBounded(b, b.Add(here[0], there[0]), v, plain[0])}
}

// overwritten matches a pool that reads one of the activations known to captum.
func overwritten(b *Builder, _ *Op, n onnx.Node) bool {
	if n.OpType != "MaxPool" {
		return false
	}
	known := []string{"Relu", "Elu", "LeakyRelu", "Sigmoid", "Tanh", "Softplus", "MaxPool", "Softmax"}
	return slices.ContainsFunc(b.model, func(m onnx.Node) bool {
		return slices.Contains(known, m.OpType) && m.Output[0] == n.Input[0]
	})
}

// unknown returns a rule that rejects a node.
func unknown(what string) Rule {
	return func(b *Builder, _ *Op, n onnx.Node, _ []Value) []Value {
		b.Fail(n,
			"DeepLIFT has no rule for it: it %s; use integrated gradients instead, which also compare an "+
				"image with a baseline and need only derivatives", what)
		return nil
	}
}
