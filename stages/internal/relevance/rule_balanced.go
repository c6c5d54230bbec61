package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// The rules of a [Balance] propagate derivatives of a linear map that has the layer's output at the layer's
// input: values, times what is propagated to them, sum to what arrived, less the constants' share.

// balancing is a Balance as rules read it.
type balancing struct{ Balance }

// cases returns the rules, of which the first that matches counts.
func (x balancing) cases() (cases []Case) {
	if x.Attention == Detach {
		cases = append(cases, Case{Type("Softmax"), stop})
	}
	if x.Norm == Detach {
		cases = append(cases,
			Case{Type("LayerNormalization", "InstanceNormalization"), centred},
			Case{Type("LRN", "LpNormalization"), quotientRule},
			Case{divides, dividend},
			Case{statistic, stop})
	}
	if x.Activation == Ratio {
		cases = append(cases,
			Case{homogeneous, Gradient},
			Case{squares, secantOfSquare},
			Case{elementwise, secant},
			Case{curved, noRatio})
	}
	if x.Product == Half {
		cases = append(cases, Case{Type("Mul"), x.halved}, Case{powers, perFactor})
	}
	if x.Attention != Plain {
		cases = append(cases, Case{Type("MatMul", "Gemm", "Einsum"), x.halved})
	}
	return cases
}

func stop(_ *Builder, _ *Op, n onnx.Node, _ []Value) []Value { return make([]Value, len(n.Input)) }

// divides matches quotients whose divisor depends on the image.
func divides(b *Builder, _ *Op, n onnx.Node) bool { return n.OpType == "Div" && b.dynamic(n.Input[1]) }

// dividend treats the divisor as a constant.
func dividend(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
	if !b.dynamic(n.Input[0]) {
		return []Value{"", ""}
	}
	return []Value{b.Unbroadcast(b.Div(r[0], n.Input[1]), b.Shape(n.Input[0])), ""}
}

// statistic matches lengths and reciprocals, also as powers: what a normalisation multiplies or divides by.
func statistic(b *Builder, _ *Op, n onnx.Node) bool {
	return n.OpType == "Reciprocal" || n.OpType == "ReduceL2" ||
		n.OpType == "Pow" && !b.exponents(n, func(p float64) bool { return p >= 0 })
}

// exponents reports whether all exponents of a Pow are of some kind, true also if they are unknown.
func (b *Builder) exponents(n onnx.Node, kind func(float64) bool) bool {
	if v, ok := b.g.Float32s(n.Input[1]); ok {
		return !slices.ContainsFunc(v, func(p float32) bool { return !kind(float64(p)) })
	}
	v, _ := b.g.Int64s(n.Input[1])
	return !slices.ContainsFunc(v, func(p int64) bool { return !kind(float64(p)) })
}

// centred is a normalisation with a constant deviation: y = γ·(x − μ)/σ + β, where the mean μ is that of x.
func centred(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
	mean, factor := b.statistics(n)
	g := b.Mul(b.Mul(r[0], b.scaleOf(n)), factor)
	return []Value{b.Sub(g, b.average(g, b.Shape(mean))), "", ""}
}

// homogeneous matches activations of which a multiple of the input gives that multiple of the output: their
// ratio is the derivative.
func homogeneous(_ *Builder, _ *Op, n onnx.Node) bool {
	return slices.Contains([]string{"Abs", "LeakyRelu", "PRelu", "Relu"}, n.OpType)
}

// squares matches products of a value with itself, which are functions of one value as Pow is.
func squares(b *Builder, _ *Op, n onnx.Node) bool {
	return n.OpType == "Mul" && n.Input[0] == n.Input[1] && b.dynamic(n.Input[0])
}

func secantOfSquare(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
	return []Value{b.Mul(r[0], n.Input[0]), ""}
}

// curved matches functions that have no ratio: of several values, or with other inputs than the image's.
func curved(_ *Builder, op *Op, n onnx.Node) bool {
	return op.Kind == Activation || n.OpType == "LogSoftmax" || n.OpType == "ReduceLogSumExp"
}

func noRatio(b *Builder, _ *Op, n onnx.Node, _ []Value) []Value {
	b.Fail(n, "backward has no rule of activations for it, which isn't an element-wise function with a "+
		"finite value at 0; use {activation: plain}, or plain")
	return nil
}

// secant is the slope of an element-wise function between 0 and its input, (f(x) − f(0))/x: that of a gate
// g in f(x) = x·g(x), detached. f(0) is a constant that is added. Near 0 it is the derivative.
func secant(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	zero, finite := b.atZero(n)
	switch {
	case !finite:
		return noRatio(b, op, n, r)
	case zero && !unbounded(b, n):
		return b.ratio(op, n, r)
	case zero:
		return quotientRule(b, op, n, r)
	}
	return b.raised(op, n, r)
}

// input returns the index of the first input that depends on the image.
func (b *Builder) input(n onnx.Node) int { return slices.IndexFunc(n.Input, b.dynamic) }

// ratio is the secant of a function with f(0) = 0 and a finite derivative there.
func (b *Builder) ratio(op *Op, n onnx.Node, r []Value) []Value {
	i := b.input(n)
	near, _ := b.near(n.Input[i])
	_, slope := b.origin(op, n)
	rise := b.Add(n.Output[0], b.Mul(near, slope))
	back := make([]Value, len(n.Input))
	back[i] = b.Mul(r[0], b.Div(rise, b.Add(n.Input[i], near)))
	return back
}

// quotientRule is y/x, or the derivative where x is about 0, of functions whose derivative isn't the same
// there for all elements.
func quotientRule(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	i := b.input(n)
	back := make([]Value, len(n.Input))
	derivative := op.VJP(b, n, r)[i]
	back[i] = b.quotientOr(b.Mul(r[0], n.Output[0]), n.Input[i], derivative, b.Scalar(minDifference))
	return back
}

// minRise is the input of a function with f(0) ≠ 0 below which f(x) − f(0) has few digits. The derivative at
// x/2 then differs from the secant by x²·f‴/24.
const minRise = 1e-2

// raised is the secant of a function with f(0) ≠ 0.
func (b *Builder) raised(op *Op, n onnx.Node, r []Value) []Value {
	i := b.input(n)
	value, _ := b.origin(op, n)
	halfway := b.Copy(n, map[int]Value{i: b.scaled(n.Input[i], 0.5)})
	derivative := op.VJP(b, halfway, r)[i]
	rise := b.Mul(r[0], b.Sub(n.Output[0], value))
	back := make([]Value, len(n.Input))
	back[i] = b.quotientOr(rise, n.Input[i], derivative, b.Scalar(minRise))
	return back
}

// origin emits f(0) and f′(0) of an element-wise function, of one element each.
func (b *Builder) origin(op *Op, n onnx.Node) (value, slope Value) {
	i := b.input(n)
	one := slices.Repeat([]int{1}, len(b.Shape(n.Output[0])))
	x := b.Unary("Neg", b.Sub(b.Ones(one...), b.Ones(one...)))
	b.fixed[x], b.flows[x] = false, true // so that it has a derivative
	first := len(b.nodes)
	c := b.Copy(n, map[int]Value{i: x})
	for _, m := range b.nodes[first:] {
		for _, v := range m.Output {
			t := b.g.Types[v]
			t.Shape = one
			b.g.Types[v] = t
		}
	}
	return c.Output[0], op.VJP(b, c, []Value{b.Ones(one...)})[i]
}

// powers matches reductions that multiply values, several or one with itself.
func powers(_ *Builder, _ *Op, n onnx.Node) bool {
	return n.OpType == "ReduceProd" || n.OpType == "ReduceSumSquare"
}

// perFactor divides the derivative by the number of factors.
func perFactor(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	back := op.VJP(b, n, r)
	back[0] = b.scaled(back[0], 1/float32(b.factors(n)))
	return back
}

// factors returns how many values each product of a reduction has.
func (b *Builder) factors(n onnx.Node) int {
	if n.OpType == "ReduceProd" {
		return size(b.Shape(n.Input[0])) / size(b.Shape(n.Output[0]))
	}
	return 2
}

// halved gives each of two factors half of its derivative, or the only one that something is propagated
// through all of it. A constant factor whose derivative is asked for, such as attention, has all of its own.
func (x balancing) halved(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	back := op.VJP(b, n, r)
	first, second := x.carries(b, n.Input[0]), x.carries(b, n.Input[1])
	for i, carries := range []bool{first, second} {
		switch {
		case !carries && !x.asked(b, n.Input[i]):
			back[i] = ""
		case first && second:
			back[i] = b.scaled(back[i], 0.5)
		}
	}
	return back
}

// asked reports whether v is one of the values whose derivatives are the result, or moved from one.
func (x balancing) asked(b *Builder, v Value) bool {
	for !slices.Contains(b.wrt, v) {
		n, _, ok := b.producer(v)
		if !ok || b.op(n) == nil || b.op(n).Kind != Move {
			return false
		}
		v = n.Input[0]
	}
	return true
}

// carries reports whether something is propagated from v to the image.
func (x balancing) carries(b *Builder, v Value) bool {
	return memoise(&b.carrying, v, func(v Value) bool {
		if !b.dynamic(v) {
			return false
		}
		n, _, ok := b.producer(v)
		if !ok || b.op(n) == nil {
			return true
		}
		op := b.op(n)
		if op.Kind == Opaque || x.Attention == Detach && n.OpType == "Softmax" ||
			x.Norm == Detach && statistic(b, op, n) {
			return false
		}
		inputs := n.Input
		if x.Norm == Detach && n.OpType == "Div" {
			inputs = inputs[:1]
		}
		for i, in := range inputs {
			if op.Role(i) != Config && x.carries(b, in) {
				return true
			}
		}
		return false
	})
}
