package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// atZero returns whether an element-wise function is 0 where its input is 0, and whether it is finite there.
func (b *Builder) atZero(n onnx.Node) (zero, finite bool) {
	members := []onnx.Node{n}
	if g, ok := b.groups[n.Output[0]]; ok {
		members = g.members
	}
	zeros := map[Value]bool{n.Input[b.input(n)]: true}
	for _, m := range members {
		if infiniteAt0(b, m, zeros) {
			return false, false
		}
		zeros[m.Output[0]] = b.zeroAt0(m, zeros)
	}
	return zeros[members[len(members)-1].Output[0]], true
}

// infiniteAt0 reports whether an element-wise operator has no finite value, given which values are 0.
func infiniteAt0(b *Builder, n onnx.Node, zeros map[Value]bool) bool {
	switch n.OpType {
	case "Acosh", "Log", "Reciprocal":
		return zeros[n.Input[0]]
	case "Div":
		return zeros[n.Input[1]]
	case "Pow":
		return zeros[n.Input[0]] && !b.exponents(n, func(p float64) bool { return p >= 0 })
	}
	return false
}

// zeroAt0 reports whether an element-wise operator is certainly 0, given which values are, and as precise
// near 0 as elsewhere. Elu and its kin aren't: ONNX Runtime computes them by exp x − 1.
func (b *Builder) zeroAt0(n onnx.Node, zeros map[Value]bool) bool {
	none := func(c float32) bool { return c == 0 }
	zero := func(v Value) bool { return zeros[v] || b.constants(v, none) }
	switch n.OpType {
	case "Abs", "Asin", "Asinh", "Atan", "Atanh", "Erf", "HardSwish", "Identity", "LeakyRelu", "Neg", "PRelu",
		"Relu", "Sin", "Sinh", "Softsign", "Sqrt", "Tan", "Tanh":
		return zeros[n.Input[0]]
	case "Add", "Sub":
		return zero(n.Input[0]) && zero(n.Input[1])
	case "Mul":
		return zero(n.Input[0]) || zero(n.Input[1])
	case "Div":
		return zero(n.Input[0])
	case "Pow":
		return zeros[n.Input[0]] && b.exponents(n, func(p float64) bool { return p > 0 })
	case "Shrink":
		return zeros[n.Input[0]] && n.Float("lambd", 0.5) >= 0
	case "ThresholdedRelu":
		return zeros[n.Input[0]] && n.Float("alpha", 1) >= 0
	case "Clip":
		return zeros[n.Input[0]] && b.bounds0(n.In(1), n.In(2))
	case "Max":
		return b.others(n, zeros, func(c float32) bool { return c <= 0 })
	case "Min":
		return b.others(n, zeros, func(c float32) bool { return c >= 0 })
	}
	return false
}

// constants reports whether v is a constant of such elements.
func (b *Builder) constants(v Value, such func(float32) bool) bool {
	c, ok := b.g.Float32s(v)
	return ok && !slices.ContainsFunc(c, func(x float32) bool { return !such(x) })
}

// bounds0 reports whether optional bounds of a Clip have 0 between them.
func (b *Builder) bounds0(low, high Value) bool {
	return (low == "" || b.constants(low, func(c float32) bool { return c <= 0 })) &&
		(high == "" || b.constants(high, func(c float32) bool { return c >= 0 }))
}

// others reports whether one input of a node is 0 and the others are such constants.
func (b *Builder) others(n onnx.Node, zeros map[Value]bool, such func(float32) bool) bool {
	return !slices.ContainsFunc(n.Input, func(v Value) bool { return !zeros[v] && !b.constants(v, such) })
}
