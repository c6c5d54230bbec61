package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// toFirstLargest emits dy at the first largest element of each window of x, in row-major order, added up
// where windows overlap; y has the largest elements. It needs no indices, only comparisons and copies,
// which are the same on all devices, and adds in a fixed order.
//
// It goes axis by axis. Forward, from the last axis on, every line of a window becomes its largest
// element. Backward, from the first axis on, dy goes to the first line whose largest element is the
// window's, and in it to the first such element.
func (b *Builder) toFirstLargest(x, y, dy Value, w window) Value {
	rank := len(w.in)
	largest := make([]Value, rank+1) // by number of the axes that are still whole
	largest[0], largest[rank] = y, x
	axes := make([]lines, rank)
	windows := make([]Value, rank)
	for i := rank - 1; i >= 0; i-- {
		axes[i] = b.lines(w, i, size(b.Shape(x)[:2]))
		windows[i] = b.unfold(largest[i+1], axes[i])
		if i > 0 {
			largest[i] = b.overWindow("ReduceMax", windows[i])
		}
	}
	for i, l := range axes {
		dy = b.fold(b.atFirst(windows[i], largest[i], dy, l), l)
	}
	return b.Reshape(dy, b.Shape(x)...)
}

// toFirstBest emits dy [rows, 1] at the first element of each row of x that its reduction, ReduceMax or
// ReduceMin, is equal to.
func (b *Builder) toFirstBest(reduction string, x, dy Value) Value {
	shape := b.Shape(x)
	l := lines{before: shape[0], in: shape[1], behind: 1, out: 1, kernel: shape[1],
		reads: alloc[int64](b, shape[1])}
	for k := range l.reads {
		l.reads[k] = int64(k)
	}
	windows := b.unfold(x, l)
	return b.Reshape(b.fold(b.atFirst(windows, b.overWindow(reduction, windows), dy, l), l), shape...)
}

// lines are windows along one axis of a value [before, in, behind].
type lines struct {
	before, in, behind int
	out, kernel        int     // number of windows, and of their elements
	reads              []int64 // by window and element: its place among in, −1 in the padding
}

// lines returns the windows along axis i of that many images, where the axes behind it are pooled already.
func (b *Builder) lines(w window, i, images int) lines {
	l := lines{before: images * size(w.in[:i]), in: w.in[i], behind: size(w.out[i+1:]),
		out: w.out[i], kernel: w.kernel[i], reads: alloc[int64](b, w.out[i], w.kernel[i])}
	for k := range l.reads {
		at := w.stride[i]*(k/l.kernel) + w.dilation[i]*(k%l.kernel) - w.before[i]
		if at < 0 || at >= l.in {
			at = -1
		}
		l.reads[k] = int64(at)
	}
	return l
}

// unfold emits the elements of all windows, [before, out, kernel, behind]. In the padding it repeats another
// element of the window.
func (b *Builder) unfold(x Value, l lines) Value {
	at := slices.Clone(l.reads)
	for o := range l.out {
		window := at[o*l.kernel : (o+1)*l.kernel]
		inside := max(0, slices.Max(window)) // a window may be padding alone
		for k := range window {
			if window[k] < 0 {
				window[k] = inside
			}
		}
	}
	x = b.Reshape(x, l.before, l.in, l.behind)
	return b.Reshape(b.pick(x, at), l.before, l.out, l.kernel, l.behind)
}

// overWindow emits a reduction of what [Builder.unfold] emits, [before, out, 1, behind].
func (b *Builder) overWindow(reduction string, windows Value) Value {
	shape := slices.Clone(b.Shape(windows))
	shape[2] = 1
	return b.Emit(reduction, shape, []Value{windows}, onnx.Attr{Name: "axes", Value: []int64{2}})
}

// atFirst emits dy at the first element of each window that equals its largest, or smallest, and 0 at the
// others.
func (b *Builder) atFirst(windows, largest, dy Value, l lines) Value {
	shape := b.Shape(windows)
	line := []int{l.before, l.out, 1, l.behind}
	largest, dy = b.Reshape(largest, line...), b.Reshape(dy, line...)
	places := alloc[float32](b, l.out, l.kernel)
	beyond := float32(l.kernel)
	for k, at := range l.reads {
		places[k] = float32(k % l.kernel)
		if at < 0 {
			places[k] = beyond
		}
	}
	isLargest := b.EmitTyped("Equal", onnxpb.TensorProto_BOOL, shape, []Value{windows, largest})
	at := b.Emit("Where", shape, []Value{isLargest, b.Floats(places, l.out, l.kernel, 1), b.Scalar(beyond)})
	first := b.overWindow("ReduceMin", at)
	numbers := make([]float32, l.kernel)
	for k := range numbers {
		numbers[k] = float32(k)
	}
	isFirst := b.EmitTyped("Equal", onnxpb.TensorProto_BOOL, shape,
		[]Value{b.Floats(numbers, l.kernel, 1), first}) // nowhere, if first is beyond
	return b.Emit("Where", shape, []Value{isFirst, dy, b.Scalar(0)})
}

// fold is the adjoint of [Builder.unfold]: it emits for every element the sum over the windows that it is in.
func (b *Builder) fold(windows Value, l lines) Value {
	in := make([][]int64, l.in) // by element: where it is in windows
	most := 0
	for k, at := range l.reads {
		if at >= 0 {
			in[at] = append(in[at], int64(k))
			most = max(most, len(in[at]))
		}
	}
	x := b.Reshape(windows, l.before, l.out*l.kernel, l.behind)
	if slices.ContainsFunc(in, func(where []int64) bool { return len(where) < most }) {
		x = b.padAxis(x, 1, 0, 1) // zeros for elements in fewer windows
	}
	var sum Value
	for j := range most {
		at := alloc[int64](b, l.in)
		for i, where := range in {
			at[i] = int64(len(l.reads))
			if j < len(where) {
				at[i] = where[j]
			}
		}
		part := b.pick(x, at)
		if j == 0 {
			sum = part
		} else {
			sum = b.Add(sum, part)
		}
	}
	return sum
}

// pick emits the elements of x [before, in, behind] at the given places, if these aren't all in order.
func (b *Builder) pick(x Value, at []int64) Value {
	shape := slices.Clone(b.Shape(x))
	inOrder := len(at) == shape[1]
	for k := range at {
		inOrder = inOrder && at[k] == int64(k)
	}
	if inOrder {
		return x
	}
	shape[1] = len(at)
	return b.Emit("Gather", shape, []Value{x, b.Int64s(at, len(at))}, onnx.Attr{Name: "axis", Value: 1})
}
