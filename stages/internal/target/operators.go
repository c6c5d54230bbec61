package target

import (
	"slices"
)

// functions are the operators that expressions call by name.
var functions = []*operator{
	&absolute, &argmax, &cosine, &dot, &except, &exponential, &frozen, &iou, &logarithm, &logsumexp, &maximum,
	&mean, &minimum, &nearest, &only, &other, &rectified, &resize, &sigmoid, &signOf, &softmax, &squareRoot,
	&sum,
}

// signs are the operators that stand between operands, or in front of one.
var signs = []*operator{
	&added, &subtracted, &multiplied, &divided, &negative, &equal, &unequal, &less, &greater, &atMost,
	&atLeast,
}

// operatorNamed returns the operator of a node, nil if there is none.
func operatorNamed(name string) *operator {
	for _, list := range [][]*operator{functions, signs} {
		if k := slices.IndexFunc(list, func(o *operator) bool { return o.name == name }); k >= 0 {
			return list[k]
		}
	}
	return nil
}

// functionNames returns what can be called: functions and presets.
func functionNames() []string {
	var names []string
	for _, o := range functions {
		names = append(names, o.name)
	}
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}

// A value is one of a kit's: an array, or the name of a value in a graph.
type value any

// A kit makes values of values, to evaluate or to emit an operator that is made of others.
type kit interface {
	// apply applies an operator that has eval and emit; ints are what it would have found out when bound.
	apply(o *operator, ints []int, args ...value) value
	constant(v float64) value
	shape(v value) []int // of one image
}

// evaluated returns the value of an operator that is made of others.
func evaluated(t *term, args []array) array {
	values := make([]value, len(args))
	for i, a := range args {
		values[i] = a
	}
	return t.made(arithmetic{}, t, values).(array)
}

// arithmetic is the kit of arrays.
type arithmetic struct{}

func (arithmetic) shape(v value) []int { return v.(array).shape }

func (arithmetic) constant(v float64) value { return scalar(v) }

func (arithmetic) apply(o *operator, ints []int, args ...value) value {
	in := make([]array, len(args))
	for i, a := range args {
		in[i] = a.(array)
	}
	out, err := o.eval(&term{operator: o, ints: ints}, in)
	if err != nil {
		panic(err) // no operator with a derivative returns an error
	}
	return out
}

// last returns the last axis of a value.
func last(k kit, v value) []int { return []int{len(k.shape(v)) - 1} }
