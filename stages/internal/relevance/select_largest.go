package relevance

import (
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// separable reports whether the cotangent of a MaxPool can go back an axis at a time: every
// element along an axis is in some window's reach.
func (w window) separable() bool {
	for i, k := range w.kernel {
		if w.dilation[i] != 1 || k < w.stride[i] || w.before[i] < 0 || w.after[i] < 0 {
			return false
		}
	}
	return true
}

// largest gives the cotangent of a MaxPool to the largest element of each window, the first
// of equals in the order of rows. It goes back an axis at a time, from the largest of a
// window to the first line that has it, and from there to the first element: the maxima of
// lines are pools again, and no pool counts places, which costs more than the pool itself
// and moves it out of the blocked layout.
func (b *Builder) largest(n onnx.Node, w window, dy Value) Value {
	rank := len(w.in)
	stages := make([]Value, rank+1) // stages[i] is pooled along the axes from i on
	stages[0], stages[rank] = n.Output[0], n.Input[0]
	for i := rank - 1; i > 0; i-- {
		stages[i] = b.poolAlong(n, w, i, stages[i+1])
	}
	for i := range rank {
		dy = b.firstEqual(w, i, stages[i+1], stages[i], dy)
	}
	return dy
}

// poolAlong emits the pool n of x along spatial axis i alone.
func (b *Builder) poolAlong(n onnx.Node, w window, i int, x Value) Value {
	rank := len(w.in)
	kernel, stride, pads := slices.Repeat([]int{1}, rank), slices.Repeat([]int{1}, rank), make([]int, 2*rank)
	kernel[i], stride[i], pads[i], pads[rank+i] = w.kernel[i], w.stride[i], w.before[i], w.after[i]
	shape := slices.Clone(b.Shape(x))
	shape[2+i] = w.out[i]
	return b.Emit("MaxPool", shape, []Value{x}, onnx.Attr{Name: "kernel_shape", Value: longs(kernel)},
		onnx.Attr{Name: "strides", Value: longs(stride)}, onnx.Attr{Name: "pads", Value: longs(pads)},
		onnx.Attr{Name: "ceil_mode", Value: n.Int("ceil_mode", 0)})
}

// firstEqual gives the cotangent of y, which is x pooled along spatial axis i, to the first
// element of each window that equals it; to the last one where none before does.
func (b *Builder) firstEqual(w window, i int, x, y, dy Value) Value {
	axis, k, s, out := 2+i, w.kernel[i], w.stride[i], w.out[i]
	if k == 1 { // and s, so that y is x
		return dy
	}
	// What is read of the padding is equal to nothing.
	x = b.padAxisWith(x, axis, w.before[i], max(0, s*(out-1)+k-1-w.before[i]-w.in[i]), float32(math.NaN()))
	reach := (k-1)/s + 1 // how many windows an element is in, at most
	phases := make([]Value, s)
	for t := range k {
		part := dy
		if t < k-1 {
			part = b.Mul(dy, b.mask("Equal", b.every(x, axis, t, s, out), y))
			dy = b.Sub(dy, part)
		}
		part = b.padAxis(part, axis, t/s, reach-1-t/s)
		if phases[t%s] == "" {
			phases[t%s] = part
		} else {
			phases[t%s] = b.Add(phases[t%s], part)
		}
	}
	shape := b.Shape(phases[0])
	places := slices.Clone(shape)
	places[axis] *= s
	dx := phases[0]
	if s > 1 {
		apart := slices.Insert(slices.Clone(shape), axis+1, 1)
		for p, v := range phases {
			phases[p] = b.Reshape(v, apart...)
		}
		dx = b.Reshape(b.Concat(axis+1, phases...), places...)
	}
	return b.padAxis(dx, axis, -w.before[i], w.before[i]+w.in[i]-places[axis])
}

// every emits count elements of x along an axis: one of each step, from the given one on.
func (b *Builder) every(x Value, axis, from, step, count int) Value {
	shape := slices.Clone(b.Shape(x))
	shape[axis] = count
	return b.Emit("Slice", shape, []Value{x, b.Ints(from), b.Ints(from + step*(count-1) + 1), b.Ints(axis), b.Ints(step)})
}

// padAxisWith is [Builder.padAxis] with a number of its own.
func (b *Builder) padAxisWith(x Value, axis, before, after int, v float32) Value {
	if before == 0 && after == 0 {
		return x
	}
	shape := slices.Clone(b.Shape(x))
	pads := make([]int, 2*len(shape))
	pads[axis], pads[len(shape)+axis] = before, after
	shape[axis] += before + after
	return b.EmitTyped("Pad", onnxpb.TensorProto_FLOAT, shape, []Value{x, b.Ints(pads...), b.Scalar(v)})
}
