package target

import (
	"fmt"
	"math"
)

// The operators of two values, element by element; shapes broadcast as in NumPy.
var (
	added      = elementwise("+", "Add", addedTo)
	subtracted = elementwise("-", "Sub", subtractedFrom)
	multiplied = elementwise("*", "Mul", multipliedBy)
	divided    = elementwise("/", "Div", dividedBy)
	larger     = elementwise("larger", "Max", pairing{of: math.Max}) // for operators made of others
	smaller    = elementwise("smaller", "Min", pairing{of: math.Min})
)

// arithmetic of two numbers, and what is known of the result's type.
var (
	addedTo = pairing{func(x, y float64) float64 { return x + y },
		func(t *Type, a, b Type) {
			t.Low, t.High, t.Linear = a.Low+b.Low, a.High+b.High, a.Linear && b.Linear
		}}
	subtractedFrom = pairing{func(x, y float64) float64 { return x - y },
		func(t *Type, a, b Type) {
			t.Low, t.High, t.Linear = a.Low-b.High, a.High-b.Low, a.Linear && b.Linear
		}}
	multipliedBy = pairing{func(x, y float64) float64 { return float64(x * y) },
		func(t *Type, a, b Type) {
			t.Low, t.High = corners(a, b)
			t.Linear = a.Linear && b.Frozen || a.Frozen && b.Linear
		}}
	dividedBy = pairing{func(x, y float64) float64 { return x / y },
		func(t *Type, a, b Type) {
			if b.Low == b.High && b.Low != 0 {
				t.Low, t.High = corners(a, Type{Low: 1 / b.Low, High: 1 / b.High})
			}
			t.Linear = a.Linear && b.Frozen
		}}
)

// A pairing is the arithmetic of an operator of two values.
type pairing struct {
	of    func(x, y float64) float64
	typed func(t *Type, a, b Type)
}

// corners returns the bounds of a product. A bound that isn't known makes both unknown.
func corners(a, b Type) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, x := range []float64{a.Low, a.High} {
		for _, y := range []float64{b.Low, b.High} {
			if math.IsInf(x, 0) || math.IsInf(y, 0) {
				return math.Inf(-1), math.Inf(1)
			}
			low, high = min(low, x*y), max(high, x*y)
		}
	}
	return low, high
}

func elementwise(name, op string, p pairing) operator {
	return operator{
		name: name, form: "x " + name + " y", names: []string{"x", "y"}, required: 2,
		bind: func(_ *binder, t *term) error {
			p.typed(&t.Type, t.args[0].Type, t.args[1].Type)
			return t.broadcasts()
		},
		eval: func(_ *term, args []array) (array, error) { return args[0].with(args[1], p.of), nil },
		emit: func(e *emitter, _ *term, args []string) string { return e.paired(op, args[0], args[1]) },
	}
}

// broadcasts sets the shape that two arguments broadcast to.
func (t *term) broadcasts() error {
	a, b := t.args[0].Type, t.args[1].Type
	shape, ok := joined(a.Shape, b.Shape)
	if !ok {
		return fmt.Errorf("the left side is of %v and the right one of %v, which don't broadcast", a, b)
	}
	t.Shape = shape
	return nil
}

// The comparisons, 1 where they hold and 0 elsewhere. They have no derivative.
var (
	equal   = comparison("==", func(x, y float64) bool { return x == y })
	unequal = comparison("!=", func(x, y float64) bool { return x != y })
	less    = comparison("<", func(x, y float64) bool { return x < y })
	greater = comparison(">", func(x, y float64) bool { return x > y })
	atMost  = comparison("<=", func(x, y float64) bool { return x <= y })
	atLeast = comparison(">=", func(x, y float64) bool { return x >= y })
)

func comparison(name string, holds func(x, y float64) bool) operator {
	return operator{
		name: name, form: "x " + name + " y", names: []string{"x", "y"}, required: 2,
		bind: func(_ *binder, t *term) error {
			t.Low, t.High = 0, 1
			return t.broadcasts()
		},
		eval: func(_ *term, args []array) (array, error) {
			return args[0].with(args[1], func(x, y float64) float64 {
				if holds(x, y) {
					return 1
				}
				return 0
			}), nil
		},
	}
}
