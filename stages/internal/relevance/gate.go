package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// A gating says how a value depends on the image, for products that count gates as constants: the factor of
// the higher one is the gate.
type gating int

const (
	open     gating = iota // in any way
	squashed               // through sigmoids alone
	closed                 // through Softmax alone, which passes nothing on, or not at all
)

// gate returns the number of the factor that says how much of the other passes, −1 if neither does.
func (b *Builder) gate(n onnx.Node) int {
	first, second := b.gating(n.Input[0]), b.gating(n.Input[1])
	switch {
	case first > second:
		return 0
	case first < second:
		return 1
	}
	if n.OpType == "Mul" {
		y := size(b.Shape(n.Output[0]))
		x0, x1 := size(b.Shape(n.Input[0])), size(b.Shape(n.Input[1]))
		switch {
		case x0 < y && x1 == y:
			return 0
		case x1 < y && x0 == y:
			return 1
		}
	}
	return -1
}

// gating returns how v depends on the image. Whatever is computed from gates and constants alone is a gate
// still, be it moved, resized, pooled, scaled, shifted, normalised, bounded or multiplied by another. A layer
// with weights ends that for sigmoids, which are its activations then. For Softmax it doesn't: no relevance
// comes through that, and what a layer such as CaiT's talking heads were given would be lost.
func (b *Builder) gating(v Value) gating {
	if !b.dynamic(v) {
		return closed
	}
	if known, ok := b.gatings[v]; ok {
		return known
	}
	b.gatings[v] = open // of what has no maker or an unknown one
	n, _, ok := b.maker(v)
	if !ok {
		return open
	}
	op := b.op(n)
	if op == nil {
		return open
	}
	found := closed
	switch {
	case n.OpType == "Softmax", op.Kind == Opaque:
	case n.OpType == "Sigmoid", n.OpType == "HardSigmoid":
		found = squashed
	default:
		for i, in := range n.Input {
			if op.Role(i) != Config {
				found = min(found, b.gating(in))
			}
		}
		if found == squashed && weighted(b, op, n) {
			found = open
		}
	}
	b.gatings[v] = found
	return found
}
