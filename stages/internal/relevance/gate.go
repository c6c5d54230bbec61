package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// A gating classifies how a value depends on the image, for rules that treat gates as constants: in a product
// the factor of the higher gating is the gate.
type gating int

const (
	notGate      gating = iota // in any way: no gate
	lengthGate                 // through lengths, or sigmoids too
	sigmoidGate                // through sigmoids only
	constantGate               // through Softmax only, which stops relevance, or not at all
)

// gate returns the index of the factor that gates the other, or −1.
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

// gating returns how v depends on the image. A value computed only from gates and constants is a gate too:
// moved, resized, pooled, scaled, shifted, normalised, bounded or multiplied by another gate. A layer with
// weights ends this for sigmoids, which are then its activations, and for lengths. It doesn't for Softmax: no
// relevance passes that, and the relevance of layers such as CaiT's talking heads would be lost. Lengths are
// of the statistics that normalisations multiply by, as ConvNeXt V2 does, and aren't smaller than what they
// multiply where a map has a single place.
func (b *Builder) gating(v Value) gating {
	if !b.dynamic(v) {
		return constantGate
	}
	if known, ok := b.gatings[v]; ok {
		return known
	}
	b.gatings[v] = notGate // for values without a producer or with an unknown one
	n, _, ok := b.producer(v)
	if !ok {
		return notGate
	}
	op := b.op(n)
	if op == nil {
		return notGate
	}
	found := constantGate
	switch {
	case n.OpType == "Softmax", op.Kind == Opaque:
	case n.OpType == "Sigmoid", n.OpType == "HardSigmoid":
		found = sigmoidGate
	case n.OpType == "ReduceL1", n.OpType == "ReduceL2":
		found = lengthGate
	default:
		for i, in := range n.Input {
			if op.Role(i) != Config {
				found = min(found, b.gating(in))
			}
		}
		if found < constantGate && weighted(b, op, n) {
			found = notGate
		}
	}
	b.gatings[v] = found
	return found
}
