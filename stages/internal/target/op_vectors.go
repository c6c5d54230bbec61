package target

import (
	"fmt"
	"math"
)

// dot is the product of vectors along their last axes: Σ aᵢbᵢ.
var dot = operator{
	name: "dot", form: "dot(a, b), along the last axis", names: []string{"a", "b"}, required: 2,
	bind: func(_ *binder, t *term) error {
		a, b := t.args[0], t.args[1]
		t.Linear = a.Linear && b.Frozen || a.Frozen && b.Linear
		return t.ofVectors()
	},
	made: func(k kit, _ *term, args []value) value {
		p := k.apply(&multiplied, nil, args...)
		return k.apply(&sum, last(k, p), p)
	},
}

// cosine is the cosine of the angle between vectors along their last axes: a·b/(‖a‖‖b‖), undefined for a
// vector of zeros.
var cosine = operator{
	name: "cosine", form: "cosine(a, b), along the last axis", names: []string{"a", "b"}, required: 2,
	bind: func(_ *binder, t *term) error {
		t.Low, t.High = -1, 1
		return t.ofVectors()
	},
	made: func(k kit, t *term, args []value) value {
		norm := func(v value) value { return k.apply(&squareRoot, nil, dot.made(k, t, []value{v, v})) }
		lengths := k.apply(&multiplied, nil, norm(args[0]), norm(args[1]))
		return k.apply(&divided, nil, dot.made(k, t, args), lengths)
	},
}

// ofVectors sets the shape of a function of two arrays of vectors of one length.
func (t *term) ofVectors() error {
	if err := t.broadcasts(); err != nil {
		return err
	}
	a, b := t.args[0].Shape, t.args[1].Shape
	if len(a) == 0 || len(b) == 0 || a[len(a)-1] != b[len(b)-1] {
		return fmt.Errorf("vectors of one length are needed, and these are of %v and of %v", t.args[0].Type,
			t.args[1].Type)
	}
	t.Shape = t.Shape[:len(t.Shape)-1]
	return nil
}

// except is a list without one element: ints are the index of a constant one.
var except = operator{
	name: "except", form: "except(x, i), a list without its element i", names: []string{"x", "i"},
	required: 2,
	bind: func(b *binder, t *term) error {
		x, i := t.args[0], t.args[1]
		switch {
		case len(x.Shape) != 1 || x.Shape[0] < 2:
			return fmt.Errorf("except is of a list, and this is of %v", x.Type)
		case len(i.Shape) > 0 || !i.Frozen:
			return fmt.Errorf("an index is a frozen number, and this is of %v", i.Type)
		}
		t.Shape, t.Low, t.High, t.Linear = []int{x.Shape[0] - 1}, x.Low, x.High, x.Linear
		return nil
	},
	made: func(k kit, _ *term, args []value) value {
		// The elements before the index keep their place, the others move up by one.
		x, n := args[0], k.shape(args[0])[0]
		behind := k.apply(&passed, []int{n - 1}, args[1])
		first := k.apply(&part, []int{0, 0, n - 1}, x)
		next := k.apply(&part, []int{0, 1, n}, x)
		moved := k.apply(&multiplied, nil, behind, k.apply(&subtracted, nil, next, first))
		return k.apply(&added, nil, first, moved)
	},
}

// passed is, for each of n places, 1 if it isn't before an index, else 0: ints are n.
var passed = operator{
	name: "passed",
	eval: func(t *term, args []array) (array, error) {
		out := array{[]int{t.ints[0]}, make([]float64, t.ints[0])}
		for k := range out.data {
			if float64(k) >= args[0].number() {
				out.data[k] = 1
			}
		}
		return out, nil
	},
	emit: func(e *emitter, t *term, args []string) string {
		// min(max(k − i + 1, 0), 1) of whole numbers.
		d := e.paired("Sub", e.places(t.ints[0], 1), args[0])
		return e.paired("Sub", e.op("Relu", e.shape(d), []string{d}), e.op("Relu", e.shape(d),
			[]string{e.paired("Sub", d, e.number(1))}))
	},
}

// nearest is 1 for the k elements of a list that are nearest to element i, other than itself, and 0
// elsewhere; of equal distances the first count. It has no derivative.
var nearest = operator{
	name: "nearest", form: "nearest(x, i, k), 1 for the k elements that are nearest to element i",
	names: []string{"x", "i", "k"}, required: 3, values: 2,
	bind: func(_ *binder, t *term) error {
		x := t.args[0]
		k, ok := t.args[2].whole()
		switch {
		case len(x.Shape) != 1:
			return fmt.Errorf("nearest is of a list, and this is of %v", x.Type)
		case len(t.args[1].Shape) > 0:
			return fmt.Errorf("an index is a number, and this is of %v", t.args[1].Type)
		case !ok || k < 1 || k >= x.Shape[0]:
			return fmt.Errorf("k is a number from 1 to %d", x.Shape[0]-1)
		}
		t.Shape, t.Low, t.High, t.ints = x.Shape, 0, 1, []int{k}
		return nil
	},
	eval: func(t *term, args []array) (array, error) {
		x, i := args[0].data, args[1].number()
		if !(i >= 0 && i < float64(len(x))) {
			return array{}, fmt.Errorf("the index %v is outside a list of %d", i, len(x))
		}
		out := array{args[0].shape, make([]float64, len(x))}
		for range t.ints[0] {
			best := -1
			for j, v := range x {
				if j != int(i) && out.data[j] == 0 && (best < 0 ||
					math.Abs(v-x[int(i)]) < math.Abs(x[best]-x[int(i)])) {
					best = j
				}
			}
			out.data[best] = 1
		}
		return out, nil
	},
}

// only is the only element.
var only = operator{
	name: "only", form: "only(x), of a value of one element", names: []string{"x"}, required: 1,
	bind: func(b *binder, t *term) error {
		x := t.args[0]
		if size(x.Shape) != 1 {
			return fmt.Errorf("one number is needed, and this is of %v: name one by an index", x.Type)
		}
		t.Type = x.Type
		t.Shape = nil
		return nil
	},
	made: func(k kit, _ *term, args []value) value { return k.apply(&reshaped, []int{}, args[0]) },
}
