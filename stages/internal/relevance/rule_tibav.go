package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// TIBAV is the policy that propagates relevance to a transformer's attention, after Chefer, Gur and Wolf,
// "Transformer Interpretability Beyond Attention Visualization", CVPR 2021, section 3.1, and their code. a ⊘
// b is a/(b + 10⁻⁹), and 0 if b is 0.
//
//   - linear maps: Rᵢ = Σⱼ (xᵢ⁺wᵢⱼ⁺ + xᵢ⁻wᵢⱼ⁻)·(R ⊘ Z)ⱼ, Zⱼ the sum of these products; no
//     bias. Averages are such maps.
//   - products x·y of two values, attention with values and queries with keys: half of
//     x·∂(xy)/∂x·(R ⊘ xy) for each.
//   - sums a + b: a·(R ⊘ (a+b)), scaled so that a gets the share |Σa|/(|Σa| + |Σb|) of ΣR,
//     with the sums over an image. A position embedding gets its share, a bias none.
//   - activations, Softmax, LayerNormalization, and scaling or shifting by constants pass
//     relevance on; selections use the derivative;
//   - layers that read the image use the zᴮ-rule, between its smallest and largest value.
func TIBAV() Policy {
	return Policy{Name: "tibav", Grouped: true, Cases: []Case{
		{Match: readsImage, Rule: ImageBox(1e-9).rule(LRP{})},
		{Match: several(Sum), Rule: tibavSum},
		{Match: embeds, Rule: tibavSum},
		{Match: several(Bilinear), Rule: tibavProduct},
		{Match: several(Joint, Select, Activation), Rule: tibavUnknown},
		{Match: mixes, Rule: tibavLinear},
		{Match: OfKind(Move, Select), Rule: tibavMove},
		{Match: sameShape, Rule: tibavPass},
		{Match: OfKind(Affine), Rule: tibavLinear},
		{Match: func(*Builder, *Op, onnx.Node) bool { return true }, Rule: tibavUnknown},
	}}
}

// several matches operators of some kinds with more than one input that depends on the image.
func several(kinds ...Kind) func(*Builder, *Op, onnx.Node) bool {
	return func(b *Builder, op *Op, n onnx.Node) bool {
		count := 0
		for i, v := range n.Input {
			if op.Role(i) != Config && b.dynamic(v) {
				count++
			}
		}
		return count > 1 && slices.Contains(kinds, op.Kind)
	}
}

// embeds matches sums of tokens with position embeddings.
func embeds(b *Builder, _ *Op, n onnx.Node) bool {
	return n.OpType == "Add" && slices.ContainsFunc(n.Input, func(v Value) bool { return b.embedding(v, n) })
}

// embedding reports whether v is a constant that differs between the tokens of a node's output, as position
// embeddings do. A bias is the same for all.
func (b *Builder) embedding(v Value, n onnx.Node) bool {
	s, to := b.Shape(v), b.Shape(n.Output[0])
	return !b.dynamic(v) && len(to) == 3 && to[1] > 1 && len(s) > 1 && slices.Equal(s[len(s)-2:], to[1:])
}

// mixes matches linear maps with constant weights.
func mixes(b *Builder, op *Op, n onnx.Node) bool {
	switch n.OpType {
	case "BatchNormalization", "Mul":
		return false
	}
	return op.Kind == Bilinear || op.Kind == Affine && len(n.Input) > 1 && op.Role(1) == Weight
}

// sameShape matches nodes of one input that has the shape of the output.
func sameShape(b *Builder, op *Op, n onnx.Node) bool {
	for i, v := range n.Input {
		if op.Role(i) != Config && b.dynamic(v) {
			return slices.Equal(b.Shape(v), b.Shape(n.Output[0])) &&
				(op.Kind != Affine || slices.Contains([]string{"BatchNormalization", "Neg"}, n.OpType)) &&
				(op.Kind != Joint ||
					slices.Contains([]string{"Softmax", "LayerNormalization", "InstanceNormalization", "Div"},
						n.OpType))
		}
	}
	return false
}

// tibavPass gives all relevance to the input that depends on the image.
func tibavPass(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	back := make([]Value, len(n.Input))
	for i, v := range n.Input {
		if op.Role(i) != Config && b.dynamic(v) {
			back[i] = r[0]
		}
	}
	return back
}

func tibavMove(b *Builder, op *Op, n onnx.Node, r []Value) []Value { return op.VJP(b, n, r) }

func tibavUnknown(b *Builder, _ *Op, n onnx.Node, _ []Value) []Value {
	b.Fail(n,
		"attribute/tibav has no rule for it: its rules are for attention blocks and linear layers; "+
			"attribute/attention-rollout needs no rules")
	return nil
}

// guarded emits p ⊘ q.
func (b *Builder) guarded(p, q Value) Value {
	some := b.Greater(b.Unary("Abs", q), b.Scalar(0))
	return b.Mul(b.Div(p, b.Add(q, b.Scalar(1e-9))), some)
}

func tibavLinear(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	x, w := 0, 1
	if op.Kind == Bilinear && !b.dynamic(n.Input[0]) {
		x, w = 1, 0
	}
	negative := func(v Value) Value { return b.Unary("Neg", b.Unary("Relu", b.Unary("Neg", v))) }
	signs := []func(Value) Value{func(v Value) Value { return b.Unary("Relu", v) }, negative}
	if !mixes(b, op, n) {
		signs = signs[:1] // all weights are positive
	}
	var parts []Value
	var copies []onnx.Node
	z := ""
	for _, sign := range signs {
		part := sign(n.Input[x])
		with := map[int]Value{x: part}
		if len(signs) > 1 {
			with[w] = sign(n.Input[w])
		}
		for i := range n.Input {
			if op.Role(i) == Bias {
				with[i] = ""
			}
		}
		c := b.Copy(n, with)
		parts, copies = append(parts, part), append(copies, c)
		if z == "" {
			z = c.Output[0]
		} else {
			z = b.Add(z, c.Output[0])
		}
	}
	s := b.guarded(r[0], z)
	back := make([]Value, len(n.Input))
	for k, c := range copies {
		share := b.Mul(parts[k], op.VJP(b, c, []Value{s})[x])
		if k > 0 {
			share = b.Add(back[x], share)
		}
		back[x] = share
	}
	return back
}

func tibavProduct(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	back := op.VJP(b, n, []Value{b.guarded(r[0], n.Output[0])})
	for i, v := range n.Input {
		back[i] = b.Mul(b.Mul(v, back[i]), b.Scalar(0.5))
	}
	return back
}

func tibavSum(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	sum, scale := b.wholly()
	// If the graph takes one image, a value belongs to that image, even if heads are merged with the batch.
	if at, ok := b.batchAxisOf(n.Output[0]); b.g.Shape(b.g.Inputs()[0].Name)[0] > 1 {
		if !ok {
			b.Fail(n,
				"the batch axis of its values of shape %v is unknown, and its rule needs sums per "+
					"image", b.Shape(n.Output[0]))
			return nil
		}
		sum = func(x Value) Value { return b.sumPerImage(x, at) }
		scale = func(x, factors Value) Value { return b.scalePerImage(x, factors, at) }
	}
	to := b.Shape(n.Output[0])
	whole := sum(r[0])
	s := b.guarded(r[0], n.Output[0])
	back := op.VJP(b, n, []Value{s})
	sums := make([]Value, len(n.Input))
	total := ""
	for i, v := range n.Input {
		switch {
		case b.embedding(v, n): // shared by all images, each of which gives it relevance
			back[i] = b.Mul(b.Expand(v, to...), s)
		case !b.dynamic(v):
			continue
		case slices.Equal(b.Shape(v), to):
			back[i] = b.Mul(v, back[i])
		default:
			b.Fail(n, "it adds values of shapes %v and %v", b.Shape(v), to)
			return nil
		}
		sums[i] = sum(back[i])
		size := b.Unary("Abs", sums[i])
		if total == "" {
			total = size
		} else {
			total = b.Add(total, size)
		}
	}
	for i, sum := range sums {
		if !b.dynamic(n.Input[i]) {
			back[i] = ""
			continue
		}
		carries := b.Mul(b.guarded(b.Unary("Abs", sum), total), whole)
		back[i] = scale(back[i], b.guarded(carries, sum))
	}
	return back
}

// wholly returns functions that sum all elements of a value, and scale them by one factor.
func (b *Builder) wholly() (sum func(x Value) Value, scale func(x, factor Value) Value) {
	sum = func(x Value) Value { return b.rowSums(b.Reshape(x, 1, size(b.Shape(x)))) }
	scale = func(x, factor Value) Value { return b.Mul(x, b.Reshape(factor)) }
	return sum, scale
}
