package relevance

import "slices"

// nonNegative reports whether v is known to have no negative element, by its producers and constants.
func (b *Builder) nonNegative(v Value) bool {
	return memoise(&b.notNegative, v, b.derivedNonNegative)
}

func (b *Builder) derivedNonNegative(v Value) bool {
	if x, ok := b.g.Float32s(v); ok {
		return !slices.ContainsFunc(x, func(x float32) bool { return !(x >= 0) })
	}
	n, _, ok := b.producer(v)
	if !ok {
		return false
	}
	op := b.op(n)
	if op == nil {
		return false
	}
	all := func(inputs []Value) bool {
		return !slices.ContainsFunc(inputs, func(v Value) bool { return !b.nonNegative(v) })
	}
	switch n.OpType {
	case "Relu", "Sigmoid", "HardSigmoid", "Softmax", "Abs", "Exp", "Softplus", "Sqrt", "ReduceL1",
		"ReduceL2", "ReduceSumSquare":
		return true
	case "ThresholdedRelu":
		return n.Float("alpha", 1) >= 0
	case "Clip":
		low, ok := b.g.Float32s(n.In(1))
		return ok && len(low) == 1 && low[0] >= 0
	case "Add", "Sum", "Mean", "Mul", "Max", "Min":
		return all(n.Input)
	case "Where":
		return all(n.Input[1:])
	case "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "ReduceMax", "ReduceMean",
		"ReduceMin", "ReduceSum":
		return b.nonNegative(n.Input[0])
	case "Pad":
		fill := n.In(2)
		return b.nonNegative(n.Input[0]) && (fill == "" || b.nonNegative(fill))
	}
	if op.Kind != Move {
		return false
	}
	for i, v := range n.Input { // all inputs that may be moved
		if op.Role(i) == Data && !b.nonNegative(v) {
			return false
		}
	}
	return true
}
