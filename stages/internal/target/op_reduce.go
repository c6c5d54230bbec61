package target

import (
	"fmt"
	"math"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// The reductions over axes, all of them if none is named.
var (
	sum = reduction("sum", func(v []float64) float64 {
		s := 0.0
		for _, x := range v {
			s += x
		}
		return s
	}, func(e *emitter, axes []int64, x string, out []int) string {
		return e.op("ReduceSum", out, []string{x, e.ints("axes", axes)},
			onnx.Attr{Name: "keepdims", Value: 0})
	}, func(t *Type, x Type, n int) {
		t.Low, t.High, t.Linear = x.Low*float64(n), x.High*float64(n), x.Linear
	})
	mean = reduction("mean", func(v []float64) float64 {
		s := 0.0
		for _, x := range v {
			s += x
		}
		return s / float64(len(v))
	}, reduced("ReduceMean"), func(t *Type, x Type, _ int) {
		t.Low, t.High, t.Linear = x.Low, x.High, x.Linear
	})
	maximum = reduction("max", func(v []float64) float64 {
		m := math.Inf(-1)
		for _, x := range v {
			m = math.Max(m, x)
		}
		return m
	}, reduced("ReduceMax"), func(t *Type, x Type, _ int) { t.Low, t.High = x.Low, x.High })
	minimum = reduction("min", func(v []float64) float64 {
		m := math.Inf(1)
		for _, x := range v {
			m = math.Min(m, x)
		}
		return m
	}, reduced("ReduceMin"), func(t *Type, x Type, _ int) { t.Low, t.High = x.Low, x.High })
	logsumexp = reduction("logsumexp", func(v []float64) float64 {
		m := math.Inf(-1)
		for _, x := range v {
			m = math.Max(m, x)
		}
		if math.IsInf(m, 0) {
			return m
		}
		s := 0.0
		for _, x := range v {
			s += math.Exp(x - m)
		}
		return m + math.Log(s)
	}, reduced("ReduceLogSumExp"), func(t *Type, x Type, n int) {
		t.Low, t.High = x.Low+math.Log(float64(n)), x.High+math.Log(float64(n))
	})
)

func reduced(op string) func(e *emitter, axes []int64, x string, out []int) string {
	return func(e *emitter, axes []int64, x string, out []int) string {
		return e.op(op, out, []string{x}, onnx.Attr{Name: "axes", Value: axes},
			onnx.Attr{Name: "keepdims", Value: 0})
	}
}

func reduction(name string, f func([]float64) float64,
	emit func(e *emitter, axes []int64, x string, out []int) string,
	typed func(t *Type, x Type, n int)) operator {
	return operator{
		name: name, form: name + "(x, axis…), over all axes if none is named",
		names: []string{"x", "axis", "axis2", "axis3", "axis4"}, required: 1, values: 1,
		bind: func(b *binder, t *term) error {
			x := t.args[0]
			if len(x.Shape) == 0 {
				return fmt.Errorf("the %s of one number", name)
			}
			axes, err := b.axes(t, t.args[1:])
			if err != nil {
				return err
			}
			t.ints, t.Shape = axes, without(x.Shape, axes)
			typed(&t.Type, x.Type, size(x.Shape)/max(1, size(t.Shape)))
			return nil
		},
		eval: func(t *term, args []array) (array, error) { return args[0].reduce(t.ints, f), nil },
		emit: func(e *emitter, t *term, args []string) string {
			axes := make([]int64, len(t.ints))
			for i, k := range t.ints {
				axes[i] = int64(k + 1)
			}
			return emit(e, axes, args[0], without(e.shape(args[0]), t.ints))
		},
	}
}

// argmax is the index of the largest element along an axis, the first of equal ones. It has no derivative.
var argmax = operator{
	name: "argmax", form: "argmax(x, axis), over all elements of a list", names: []string{"x", "axis"},
	required: 1, values: 1,
	bind: func(b *binder, t *term) error {
		x := t.args[0]
		axes, err := b.axes(t, t.args[1:])
		switch {
		case err != nil:
			return err
		case len(axes) != 1:
			return fmt.Errorf("argmax of %v needs an axis", x.Type)
		}
		t.ints, t.Shape = axes, without(x.Shape, axes)
		t.Low, t.High = 0, float64(x.Shape[axes[0]]-1)
		return nil
	},
	eval: func(t *term, args []array) (array, error) {
		bad := false
		out := args[0].reduce(t.ints, func(v []float64) float64 {
			k := largest(v)
			bad = bad || k < 0
			return float64(k)
		})
		if bad {
			return out, fmt.Errorf("argmax of %w", ErrUndefined)
		}
		return out, nil
	},
}

// softmax is exp x, divided by its sum along an axis, the last one if none is named.
var softmax = operator{
	name: "softmax", form: "softmax(x, axis), along the last axis if none is named",
	names: []string{"x", "axis"}, required: 1, values: 1,
	bind: func(b *binder, t *term) error {
		x := t.args[0]
		if len(x.Shape) == 0 {
			return fmt.Errorf("the softmax of one number")
		}
		t.Shape, t.Low, t.High, t.ints = x.Shape, 0, 1, []int{len(x.Shape) - 1}
		if t.args[1] == nil {
			return nil
		}
		axes, err := b.axes(t, t.args[1:])
		t.ints = axes
		return err
	},
	eval: func(t *term, args []array) (array, error) {
		x := args[0]
		thin := func(v array) array {
			shape := make([]int, len(x.shape))
			copy(shape, x.shape)
			shape[t.ints[0]] = 1
			return v.reshape(shape)
		}
		m, _ := maximum.eval(t, args)
		e := x.with(thin(m), func(x, m float64) float64 { return math.Exp(x - m) })
		s, _ := sum.eval(t, []array{e})
		return e.with(thin(s), func(x, s float64) float64 { return x / s }), nil
	},
	emit: func(e *emitter, t *term, args []string) string {
		return e.op("Softmax", e.shape(args[0]), args, onnx.Attr{Name: "axis", Value: t.ints[0] + 1})
	},
}
