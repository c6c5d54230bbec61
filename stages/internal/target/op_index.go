package target

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/classname"
)

// part selects the elements from one index to before another along an axis: ints are axis, from, to.
var part = operator{
	name: "slice",
	eval: func(t *term, args []array) (array, error) {
		return args[0].slice(t.ints[0], t.ints[1], t.ints[2]), nil
	},
	emit: func(e *emitter, t *term, args []string) string {
		shape := slices.Clone(e.shape(args[0]))
		shape[t.ints[0]] = t.ints[2] - t.ints[1]
		return e.op("Slice", shape, []string{args[0], e.ints("from", []int64{int64(t.ints[1])}),
			e.ints("to", []int64{int64(t.ints[2])}), e.ints("axis", []int64{int64(t.ints[0] + 1)})})
	},
}

// reshaped sees the elements in another shape, which ints are.
var reshaped = operator{
	name: "reshape",
	eval: func(t *term, args []array) (array, error) { return args[0].reshape(t.ints), nil },
	emit: func(e *emitter, t *term, args []string) string { return e.reshape(args[0], t.ints) },
}

// picked is the element along an axis at an index that is frozen: ints are the axis.
var picked = operator{
	name: "index",
	eval: func(t *term, args []array) (array, error) {
		x, axis := args[0], t.ints[0]
		k := args[1].number()
		if !(k >= 0 && k < float64(x.shape[axis])) || k != math.Trunc(k) {
			return array{}, fmt.Errorf("the index %v is outside an axis of %d", k, x.shape[axis])
		}
		return x.slice(axis, int(k), int(k)+1).reshape(without(x.shape, t.ints)), nil
	},
	emit: func(e *emitter, t *term, args []string) string { return e.pick(args[0], args[1], t.ints[0]) },
}

// index binds x[i, j, …]. An axis for which there is no index stays whole. A colon for the images, as in
// logits[:, 3], may stand before the others.
func (b *binder) index(n *node) (*term, error) {
	x, err := b.bind(n.args[0])
	if err != nil {
		return nil, err
	}
	indices, rank := n.args[1:], len(x.Shape)
	if len(indices) == rank+1 && indices[0].op == opSlice && indices[0].args[0] == nil &&
		indices[0].args[1] == nil {
		indices = indices[1:]
	}
	if len(indices) > rank {
		return nil, b.errorAt(indices[rank], "the axis of images isn't counted",
			"%d indices of a value of %v", len(indices), x.Type)
	}
	for axis := len(indices) - 1; axis >= 0; axis-- { // from the last, so that the others keep their numbers
		if x, err = b.indexed(x, axis, indices[axis]); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// indexed returns the term of an index of one axis.
func (b *binder) indexed(x *term, axis int, n *node) (*term, error) {
	d := x.Shape[axis]
	if n.op == opSlice {
		from, err := b.bound(n.args[0], 0, d)
		if err != nil {
			return nil, err
		}
		to, err := b.bound(n.args[1], d, d)
		switch {
		case err != nil:
			return nil, err
		case from == 0 && to == d:
			return x, nil
		case from >= to:
			return nil, b.errorAt(n, "", "the slice %d:%d selects nothing", from, to)
		}
		return x.sliced(axis, from, to), nil
	}
	if n.op == opName {
		return b.classOf(x, axis, n)
	}
	i, err := b.bind(n)
	if err != nil {
		return nil, err
	}
	k, whole := i.whole()
	switch {
	case whole && (k < -d || k >= d):
		return nil, b.errorAt(n, "", "the index %d is outside an axis of %d, 0 to %d", k, d, d-1)
	case whole:
		k = (k + d) % d
		return x.sliced(axis, k, k+1).dropping(axis), nil
	case i.value != nil || len(i.Shape) > 0:
		return nil, b.errorAt(n, "", "an index is a whole number")
	case !i.Frozen:
		return nil, b.errorAt(n, "write frozen(…), its value for the original image",
			"an index has no derivative")
	}
	return &term{operator: &picked, node: n, args: []*term{x, i}, ints: []int{axis}, at: -1,
		Type: Type{Shape: without(x.Shape, []int{axis}), Low: x.Low, High: x.High, Linear: x.Linear,
			Frozen: x.Frozen}}, nil
}

// classOf returns the term of the class of a name.
func (b *binder) classOf(x *term, axis int, n *node) (*term, error) {
	found := classname.Find(b.Names, n.text)
	switch {
	case len(b.Names) == 0:
		return nil, b.errorAt(n, "", "no names of classes are known: give model/onnx labels: FILE")
	case len(found) != 1:
		return nil, b.errorAt(n, "", "%d classes are called %q", len(found), n.text)
	case found[0] >= x.Shape[axis]:
		return nil, b.errorAt(n, "", "the class %q is number %d, outside an axis of %d", n.text, found[0],
			x.Shape[axis])
	}
	return x.sliced(axis, found[0], found[0]+1).dropping(axis), nil
}

// bound reads a bound of a slice, which counts from behind if it is negative.
func (b *binder) bound(n *node, otherwise, d int) (int, error) {
	if n == nil {
		return otherwise, nil
	}
	t, err := b.bind(n)
	if err != nil {
		return 0, err
	}
	k, ok := t.whole()
	switch {
	case !ok:
		return 0, b.errorAt(n, "", "a bound of a slice is a number")
	case k < -d || k > d:
		return 0, b.errorAt(n, "", "the bound %d is outside an axis of %d", k, d)
	case k < 0:
		k += d
	}
	return k, nil
}

func (t *term) sliced(axis, from, to int) *term {
	shape := slices.Clone(t.Shape)
	shape[axis] = to - from
	return t.as(&part, shape, axis, from, to)
}

func (t *term) dropping(axis int) *term {
	shape := without(t.Shape, []int{axis})
	return t.as(&reshaped, shape, shape...)
}

// as returns the term of an operator that moves elements.
func (t *term) as(o *operator, shape []int, ints ...int) *term {
	typed := t.Type
	typed.Shape = shape
	return &term{operator: o, node: t.node, args: []*term{t}, ints: ints, Type: typed, at: -1}
}
