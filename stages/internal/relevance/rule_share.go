package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// share gives each input what it adds to the output: x·VJP(r/(y + ε)). Pools and means have it.
func (p LRP) share(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	return p.shareOf(b, op, n, n.Output[0], r[0])
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
			b.toConstants(b.Mul(n.Input[i], v))
			back[i] = ""
		}
	}
	return back
}

// sum shares among the summands. Constants among them take their share if biases count.
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

// normalisation is the rule of a BatchNormalization that is a node of its own: an affine layer of one input
// an output, so that what the bias doesn't take passes.
func (p LRP) normalisation(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	if p.Norm == NormPassed || !p.Bias {
		return pass(b, op, n, r)
	}
	s := b.quotient(r[0], n.Output[0], p.Stabiliser, anySign)
	part := b.Mul(n.Input[0], op.VJP(b, n, []Value{s})[0])
	if b.accounts {
		b.toConstants(b.Sub(b.Mul(n.Output[0], s), part))
	}
	return []Value{part, "", "", "", ""}
}
