package target

import "math"

// The functions of each element.
var (
	negative = function("negative", "Neg", func(x float64) float64 { return -x },
		func(t *Type, x Type) { t.Low, t.High, t.Linear = -x.High, -x.Low, x.Linear })
	absolute = function("abs", "Abs", math.Abs, func(t *Type, x Type) {
		t.Low, t.High = 0, math.Max(math.Abs(x.Low), math.Abs(x.High))
	})
	exponential = function("exp", "Exp", math.Exp, func(t *Type, x Type) {
		t.Low, t.High = math.Exp(x.Low), math.Exp(x.High)
	})
	logarithm = function("log", "Log", math.Log, func(t *Type, x Type) {
		if x.Low >= 0 {
			t.Low, t.High = math.Log(x.Low), math.Log(x.High)
		}
	})
	squareRoot = function("sqrt", "Sqrt", math.Sqrt, func(t *Type, x Type) {
		t.Low, t.High = 0, math.Sqrt(math.Max(x.High, 0))
	})
	rectified = function("relu", "Relu", func(x float64) float64 {
		if x < 0 {
			return 0
		}
		return x // NaN, too
	}, func(t *Type, x Type) { t.Low, t.High = math.Max(x.Low, 0), math.Max(x.High, 0) })
	sigmoid = function("sigmoid", "Sigmoid", func(x float64) float64 {
		// The smaller of p and 1 − p keeps its digits.
		if x < 0 {
			return math.Exp(x) / (1 + math.Exp(x))
		}
		return 1 / (1 + math.Exp(-x))
	}, func(t *Type, _ Type) { t.Low, t.High = 0, 1 })
)

// signOf is −1, 0 or 1. It has no derivative.
var signOf = operator{
	name: "sign", form: "sign(x), −1, 0 or 1", names: []string{"x"}, required: 1,
	bind: func(_ *binder, t *term) error {
		t.Shape, t.Low, t.High = t.args[0].Shape, -1, 1
		return nil
	},
	eval: func(_ *term, args []array) (array, error) {
		return args[0].each(func(x float64) float64 {
			switch {
			case x > 0:
				return 1
			case x < 0:
				return -1
			}
			return x
		}), nil
	},
}

func function(name, op string, f func(float64) float64, typed func(t *Type, x Type)) operator {
	return operator{
		name: name, form: name + "(x)", names: []string{"x"}, required: 1,
		bind: func(_ *binder, t *term) error {
			t.Shape = t.args[0].Shape
			typed(&t.Type, t.args[0].Type)
			return nil
		},
		eval: func(_ *term, args []array) (array, error) { return args[0].each(f), nil },
		emit: func(e *emitter, _ *term, args []string) string {
			return e.op(op, e.shape(args[0]), args)
		},
	}
}
