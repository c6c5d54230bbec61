package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Slice emits the elements from..to of each axis of x, to exclusive, if that isn't all of x.
func (b *Builder) Slice(x Value, from, to []int) Value {
	shape := b.Shape(x)
	var starts, ends, axes, out []int
	for i, d := range shape {
		out = append(out, to[i]-from[i])
		if from[i] != 0 || to[i] != d {
			starts, ends, axes = append(starts, from[i]), append(ends, to[i]), append(axes, i)
		}
	}
	if axes == nil {
		return x
	}
	return b.Emit("Slice", out, []Value{x, b.Ints(starts...), b.Ints(ends...), b.Ints(axes...)})
}

// Reverse emits x with the order of its elements reversed along axes.
func (b *Builder) Reverse(x Value, axes ...int) Value {
	var starts, ends, steps []int
	for range axes {
		starts, ends, steps = append(starts, -1), append(ends, -1<<31), append(steps, -1)
	}
	return b.Emit("Slice", b.Shape(x),
		[]Value{x, b.Ints(starts...), b.Ints(ends...), b.Ints(axes...), b.Ints(steps...)})
}

// Pad emits x with zeros before and after the elements of each axis; negative numbers remove elements.
func (b *Builder) Pad(x Value, before, after []int) Value {
	shape := slices.Clone(b.Shape(x))
	some := false
	for i := range shape {
		some = some || before[i] != 0 || after[i] != 0
		shape[i] += before[i] + after[i]
	}
	if !some {
		return x
	}
	return b.Emit("Pad", shape, []Value{x, b.Ints(slices.Concat(before, after)...)})
}

// padAxis emits x with zeros before and after the elements of one axis.
func (b *Builder) padAxis(x Value, axis, before, after int) Value {
	rank := len(b.Shape(x))
	lo, hi := make([]int, rank), make([]int, rank)
	lo[axis], hi[axis] = before, after
	return b.Pad(x, lo, hi)
}

// Expand emits x broadcast to a shape.
func (b *Builder) Expand(x Value, shape ...int) Value {
	if slices.Equal(b.Shape(x), shape) {
		return x
	}
	return b.Emit("Expand", shape, []Value{x, b.Ints(shape...)})
}

// Zeros emits zeros, as a node that keeps them out of the file.
func (b *Builder) Zeros(shape ...int) Value {
	return b.Emit("ConstantOfShape", shape, []Value{b.Ints(shape...)})
}

// Concat emits the concatenation of values along an axis.
func (b *Builder) Concat(axis int, x ...Value) Value {
	shape := slices.Clone(b.Shape(x[0]))
	for _, v := range x[1:] {
		shape[axis] += b.Shape(v)[axis]
	}
	return b.Emit("Concat", shape, x, onnx.Attr{Name: "axis", Value: axis})
}

// Gather emits the slices of x at the given indices of an axis.
func (b *Builder) Gather(x Value, axis int, indices ...int) Value {
	shape := slices.Clone(b.Shape(x))
	shape[axis] = len(indices)
	return b.Emit("Gather", shape, []Value{x, b.Ints(indices...)}, onnx.Attr{Name: "axis", Value: axis})
}

// Cast emits x converted to another element type.
func (b *Builder) Cast(x Value, elem onnxpb.TensorProto_DataType) Value {
	return b.EmitTyped("Cast", elem, b.Shape(x), []Value{x}, onnx.Attr{Name: "to", Value: int(elem)})
}

// Between emits the mask lo < x < hi; an empty bound is ignored.
func (b *Builder) Between(x, lo, hi Value) Value {
	switch {
	case hi == "":
		return b.Greater(x, lo)
	case lo == "":
		return b.Less(x, hi)
	}
	shape := b.Shape(x)
	above := b.EmitTyped("Greater", onnxpb.TensorProto_BOOL, shape, []Value{x, lo})
	below := b.EmitTyped("Less", onnxpb.TensorProto_BOOL, shape, []Value{x, hi})
	both := b.EmitTyped("And", onnxpb.TensorProto_BOOL, shape, []Value{above, below})
	return b.Cast(both, onnxpb.TensorProto_FLOAT)
}

// along emits the product of every line of x along an axis with a matrix [size of the axis, new size].
func (b *Builder) along(x Value, axis int, matrix Value) Value {
	rank := len(b.Shape(x))
	perm := make([]int, 0, rank)
	for i := range rank {
		if i != axis {
			perm = append(perm, i)
		}
	}
	perm = append(perm, axis)
	y := b.MatMul(b.Transpose(x, perm...), matrix)
	return b.Transpose(y, inverse(perm)...)
}

// inverse returns the inverse of a permutation.
func inverse(perm []int) []int {
	out := make([]int, len(perm))
	for i, p := range perm {
		out[p] = i
	}
	return out
}

// dynamic reports whether v depends on more than the model's constants, so that it needs a cotangent.
func (b *Builder) dynamic(v Value) bool { return v != "" && b.g.Weight(v) == nil && !b.fixed[v] }
