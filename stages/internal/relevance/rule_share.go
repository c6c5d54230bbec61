package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// share distributes relevance by contribution: x·VJP(r/(y + ε)), for pools and means.
func (p LRP) share(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	return p.shareOf(b, op, n, n.Output[0], r[0])
}

// sharePower distributes relevance of sums of squares and of products by contribution: x·∂y/∂x is as many
// times y as there are factors.
func (p LRP) sharePower(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	back := p.share(b, op, n, r)
	back[0] = b.scaled(back[0], 1/float32(b.factors(n)))
	return back
}

// shareOf is share for an output y.
func (p LRP) shareOf(b *Builder, op *Op, n onnx.Node, y, r Value) []Value {
	known := anySign
	if b.nonNegative(n.Output[0]) {
		known = atLeast0
	}
	back := op.VJP(b, n, []Value{b.quotient(r, y, p.Stabiliser, known)})
	for i, v := range back {
		if v != "" && b.dynamic(n.Input[i]) {
			back[i] = b.Mul(n.Input[i], v)
		} else if v != "" {
			b.recordConstant(b.Mul(n.Input[i], v))
			back[i] = ""
		}
	}
	return back
}

// sum distributes relevance among the summands. Constants keep their share if biases get relevance.
func (p LRP) sum(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	constants, dynamic := map[int]Value{}, 0
	for i, v := range n.Input {
		if b.dynamic(v) {
			dynamic++
		} else if v != "" {
			constants[i] = b.Scalar(0)
		}
	}
	switch {
	case p.Bias || len(constants) == 0:
		return p.share(b, op, n, r)
	case dynamic == 1:
		return pass(b, op, n, r)
	}
	return p.shareOf(b, op, n, b.Copy(n, constants).Output[0], r[0])
}

// normalisation is the rule of a BatchNormalization that wasn't folded: an affine layer with one input per
// output, which passes all relevance except the bias's.
func (p LRP) normalisation(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	if p.Norm == NormPassed || !p.Bias {
		return pass(b, op, n, r)
	}
	s := b.quotient(r[0], n.Output[0], p.Stabiliser, anySign)
	part := b.Mul(n.Input[0], op.VJP(b, n, []Value{s})[0])
	if b.audited {
		b.recordConstant(b.Sub(b.Mul(n.Output[0], s), part))
	}
	return []Value{part, "", "", "", ""}
}
