package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// rectified passes relevance where the input is positive: elsewhere a Relu's output is 0, and where it isn't,
// numerator and denominator of equation 12 cancel.
func (a AbsLRP) rectified(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	return a.finish(b, n, op.VJP(b, n, r))
}

// activated applies algorithm 1. In the code of December 2024 a Dropout between an activation and a linear
// layer is a module, y = x, whose rule deletes relevance at negative values; ONNX files don't contain it. The
// code of January uses the magnitude of h(x) for |h|(|x|).
func (a AbsLRP) activated(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	h := n.Output[0]
	if a.Variant == AbsLRPJanuary {
		return a.propagate(b, n, r[0], h, func(s Value) []Value {
			v := op.VJP(b, n, []Value{b.Mul(s, b.Greater(h, b.Scalar(0)))})
			return []Value{b.Mul(n.Input[0], v[0])}
		})
	}
	if a.Variant == AbsLRPOfficial && b.feedsLinear(h) && !b.nonNegative(h) {
		r = []Value{b.Mul(r[0], b.Greater(h, b.Scalar(0)))}
	}
	return a.other(b, op, n, r)
}

// feedsLinear reports whether a linear layer reads v, possibly moved.
func (b *Builder) feedsLinear(v Value) bool { return memoise(&b.linear, v, b.findLinear) }

func (b *Builder) findLinear(v Value) bool {
	for _, k := range b.readers(v) {
		n := b.model[k]
		switch n.OpType {
		case "Gemm", "Linear":
			return true
		case "MatMul":
			return !b.dynamic(n.Input[1])
		}
		if op := b.op(n); op != nil && op.Kind == Move && b.feedsLinear(n.Output[0]) {
			return true
		}
	}
	return false
}

// maxPool applies algorithm 1, with or without the division; see [MaxPoolRule].
func (a AbsLRP) maxPool(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	h := n.Output[0]
	if a.MaxPool == MaxPoolMultiply ||
		a.MaxPool == MaxPoolAuto && a.Variant == AbsLRPOfficial && !b.branches() {
		h = ""
	}
	return a.propagate(b, n, r[0], h, func(s Value) []Value { return b.literal(op, n, s) })
}

// branches reports whether the model adds values that depend on the image.
func (b *Builder) branches() bool {
	for _, n := range b.model {
		op := b.op(n)
		if op == nil || op.Kind != Sum {
			continue
		}
		flowing := 0
		for _, v := range n.Input {
			if b.flows[v] {
				flowing++
			}
		}
		if flowing > 1 {
			return true
		}
	}
	return false
}

// ratio treats the divisor as a constant, as the statistics of normalisations and the denominators of
// softmax.
func (a AbsLRP) ratio(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	if !b.flows[n.Input[0]] {
		return []Value{"", ""}
	}
	return a.propagate(b, n, r[0], n.Output[0], func(s Value) []Value {
		h := b.positivePartOf(n.Output[0]) // (x/y)⁺ is the whole share of x
		return []Value{b.Unbroadcast(b.Mul(h, s), b.Shape(n.Input[0])), ""}
	})
}

// rescales matches products with a positive number, which aren't modules of any official code.
func rescales(b *Builder, _ *Op, n onnx.Node) bool {
	if n.OpType != "Mul" && n.OpType != "Div" {
		return false
	}
	constant := n.Input[1]
	if n.OpType == "Mul" && !b.dynamic(n.Input[0]) {
		constant = n.Input[0]
	}
	x, ok := b.g.Float32s(constant)
	return ok && len(x) == 1 && x[0] > 0 &&
		size(b.Shape(n.Output[0])) == size(b.Shape(n.Input[0]))*size(b.Shape(n.Input[1]))
}

func (a AbsLRP) pass(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
	back := make([]Value, 2)
	for i, v := range n.Input {
		if b.flows[v] {
			back[i] = b.Reshape(r[0], b.Shape(v)...)
			b.follows(v, n)
		}
	}
	return back
}

// move moves relevance with the elements. The selection of the class token is a module of the official codes,
// y = x, which deletes relevance at negative values. In the code of January 2024 so is its concatenation with
// the patches, which also get its relevance.
func (a AbsLRP) move(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	if k := b.joinedTokens(n); a.Variant == AbsLRPJanuary && k >= 0 {
		mask := b.Greater(n.Input[k], b.Scalar(0))
		return a.conserve(b, n, n.Input, n.Output[0], r[0], func(s Value) []Value {
			back := make([]Value, len(n.Input))
			back[k] = b.Mul(op.VJP(b, n, []Value{s})[k], mask)
			return back
		})
	}
	if a.Variant != AbsLRPPaper && b.picksToken(n) {
		return a.finish(b, n, op.VJP(b, n, []Value{a.keepPositive(b, n, n.Output[0], r[0])}))
	}
	for _, v := range n.Input {
		b.follows(v, n)
	}
	return op.VJP(b, n, r)
}

// picksToken reports whether a node selects one of the tokens of each image.
func (b *Builder) picksToken(n onnx.Node) bool {
	if n.OpType != "Gather" && n.OpType != "Slice" {
		return false
	}
	in, out := b.Shape(n.Input[0]), b.Shape(n.Output[0])
	r, ok := b.batchAxisOf(n.Input[0])
	if len(in) != 3 || !ok {
		return false
	}
	tokens := 1
	if b.batch == 1 && in[1] == 1 || b.batch > 1 && r.axis == 1 {
		tokens = 0
	}
	images := 1 - tokens
	return in[images] == b.batch && in[tokens] > 1 && size(out)*in[tokens] == size(in) &&
		out[len(out)-1] == in[2]
}

// joinedTokens returns the index of the operand with the tokens of each image to which a node adds constant
// tokens, −1 if there is none.
func (b *Builder) joinedTokens(n onnx.Node) int {
	if n.OpType != "Concat" || len(b.Shape(n.Output[0])) != 3 {
		return -1
	}
	patches := -1
	for i, v := range n.Input {
		in, out := b.Shape(v), b.Shape(n.Output[0])
		switch {
		case in[2] != out[2]:
			return -1
		case b.flows[v] && patches >= 0:
			return -1
		case b.flows[v]:
			patches = i
		}
	}
	return patches
}

// keepPositive emits r where v is positive, otherwise 0.
func (a AbsLRP) keepPositive(b *Builder, n onnx.Node, v, r Value) Value {
	if b.nonNegative(v) {
		return r
	}
	mask := b.Greater(v, b.Scalar(0))
	if a.Variant == AbsLRPJanuary {
		return a.conserve(b, n, []Value{v}, v, r, func(s Value) []Value { return []Value{b.Mul(s, mask)} })[0]
	}
	return b.Mul(r, mask)
}
