package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// product is the rule of products of two values that depend on the image; see
// [Gates].
func (p LRP) product(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	if len(n.Input) != 2 {
		return refuse(b, op, n, r)
	}
	gate := -1
	if p.Gates == GatesConstant {
		gate = b.gate(n)
	}
	var back []Value
	if n.OpType == "Mul" { // element by element: all that arrives is either factor's
		back = []Value{b.Unbroadcast(r[0], b.Shape(n.Input[0])), b.Unbroadcast(r[0], b.Shape(n.Input[1]))}
	} else {
		back = p.share(b, op, n, r)
	}
	if gate >= 0 {
		back[gate] = ""
		return back
	}
	for i := range back {
		back[i] = b.scaled(back[i], 0.5)
	}
	return back
}

// gate returns the number of the factor that says how much of the other passes, −1
// if neither does.
func (b *Builder) gate(n onnx.Node) int {
	first, second := b.squashed(n.Input[0]), b.squashed(n.Input[1])
	if first != second {
		if first {
			return 0
		}
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

// squashed reports whether v comes from a Softmax or a sigmoid, moved perhaps.
func (b *Builder) squashed(v Value) bool {
	for {
		n, _, ok := b.maker(v)
		if !ok {
			return false
		}
		switch n.OpType {
		case "Softmax", "Sigmoid", "HardSigmoid":
			return true
		}
		if op := b.op(n); op == nil || op.Kind != Move {
			return false
		}
		v = n.Input[0]
	}
}

// softmax passes nothing on where gates are constants; otherwise what the derivative
// does, times the input: Rᵢ = xᵢ(Rᵢ − yᵢΣR).
func (p LRP) softmax(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
	if p.Gates == GatesConstant {
		return []Value{""}
	}
	x, y := n.Input[0], n.Output[0]
	all := b.Sum(r[0], []int{b.axis(n, -1, len(b.Shape(y)))}, true)
	return []Value{b.Mul(x, b.Sub(r[0], b.Mul(y, all)))}
}
