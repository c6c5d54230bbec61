package model

import (
	"math"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// mapped returns the guarantee of a nondecreasing function of single numbers.
func mapped(n onnx.Node, x guarantee, f func(v float64) float64) guarantee {
	low, high := f(x.low), f(x.high)
	out := x
	out.low, out.high = low, high
	keeps := !x.log && x.unit > 0 && f(0) == 0 && math.Abs(f(x.unit)-x.unit) <= 1e-6*x.unit
	if !keeps {
		out.unit, out.log, out.whole = 0, false, false
	}
	if out.by == "" && !math.IsInf(low, 0) && !math.IsInf(high, 0) {
		out.by = n.Label()
	}
	return out
}

// plus returns the guarantee of a sum.
func plus(x, y guarantee) guarantee {
	out := guarantee{varies: x.varies || y.varies, low: x.low + y.low, high: x.high + y.high}
	switch {
	case !x.varies || !y.varies:
		if !x.varies {
			x, y = y, x
		}
		out = merge(out, x, y)
		out.unit, out.log, out.own, out.about = x.unit, x.log, x.own, x.about
		if y.low != 0 || y.high != 0 {
			if x.log {
				out.unit, out.log = 0, false
			}
			out.whole = false
		}
	case x.linear() && !y.normalises() || y.linear() && !x.normalises():
		return guarantee{varies: true, low: out.low, high: out.high, rounds: x.rounds || y.rounds}
	default:
		out = merge(out, x, y)
		if x.log == y.log && x.unit != 0 && y.unit != 0 {
			out.log, out.unit, out.own = x.log, x.unit+y.unit, x.own && y.own
			out.about = x.about || y.about
			if x.log {
				if out.unit = x.unit; x.unit != y.unit {
					out.unit, out.log = 0, false
				}
			}
		}
	}
	return out
}

// merge gives out the common properties of two operands.
func merge(out, x, y guarantee) guarantee {
	out.rounds = x.rounds || y.rounds
	for _, g := range []guarantee{x, y} {
		if out.by == "" {
			out.by = g.by
		}
		if out.never == "" {
			out.never, out.label = g.never, g.label
		}
	}
	return out
}

// product returns the bounds of a product.
func product(x, y guarantee) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, a := range []float64{x.low, x.high} {
		for _, b := range []float64{y.low, y.high} {
			v := a * b
			if a == 0 || b == 0 {
				v = 0
			}
			low, high = math.Min(low, v), math.Max(high, v)
		}
	}
	return low, high
}

// times returns the guarantee of a product.
func times(x, y guarantee) guarantee {
	low, high := product(x, y)
	out := guarantee{varies: x.varies || y.varies, low: low, high: high}
	switch {
	case !x.varies || !y.varies:
		if !x.varies {
			x, y = y, x
		}
		out = merge(out, x, y)
		out.own, out.about, out.log = x.own, x.about, x.log
		switch {
		case y.low == y.high:
			out.unit, out.whole = x.unit*y.low, x.whole
		case y.low >= 0 && !x.log:
			out.unit, out.about = x.unit*y.high, true
		}
		if !out.log && out.unit < 0 {
			out.unit = 0
		}
	case x.linear() || y.linear():
		return guarantee{varies: true, low: out.low, high: out.high, rounds: x.rounds || y.rounds}
	default:
		out = merge(out, x, y)
		if !x.log && !y.log {
			out.unit, out.own = x.unit*y.unit, x.own || y.own
		}
	}
	return out
}

// negative returns the guarantee of −x.
func negative(x guarantee) guarantee {
	return times(x, guarantee{low: -1, high: -1})
}

// either returns the guarantee of numbers each of which is one of x or of y.
func either(x, y guarantee) guarantee {
	out := merge(guarantee{varies: x.varies || y.varies, low: math.Min(x.low, y.low),
		high: math.Max(x.high, y.high)}, x, y)
	switch {
	case x.varies && y.varies:
		if x.unit == y.unit && x.log == y.log {
			out.unit, out.log, out.own = x.unit, x.log, x.own || y.own
		}
		if x.linear() && y.linear() {
			out.by = ""
		}
	case x.varies:
		out.unit, out.log, out.own = x.unit, x.log, x.own
	case y.varies:
		out.unit, out.log, out.own = y.unit, y.log, y.own
	}
	return out
}

func reciprocal(y guarantee) guarantee {
	out := y
	out.low, out.high = math.Inf(-1), math.Inf(1)
	if y.low > 0 || y.high < 0 {
		out.low, out.high = 1/y.high, 1/y.low
	} else if y.low == 0 {
		out.low = 1 / y.high
	}
	return out
}
