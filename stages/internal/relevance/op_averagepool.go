package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// AveragePool is the mean of each window, whose elements get equal parts of the cotangent. With
// count_include_pad the divisor is the window's size: no window extends beyond the padding, see
// [rewrite.CountsBeyond]. Without, only elements of the image count.
var opAveragePool = &Op{
	Type: "AveragePool", Kind: Affine,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x := b.Shape(n.Input[0])
		w := b.window(n, nil)
		part := b.Div(dy[0], b.divisors(w, n.Int("count_include_pad", 0) != 0))
		if w.tiles() { // windows neither overlap nor leave elements out
			thin, wide := slices.Clone(x[:2]), slices.Clone(x[:2])
			for i, o := range w.out {
				thin, wide = append(thin, o, 1), append(wide, o, w.kernel[i])
			}
			return []Value{b.Reshape(b.Expand(b.Reshape(part, thin...), wide...), x...)}
		}
		for i := range w.in { // pad up to the end of the last window
			beyond := w.stride[i]*(w.out[i]-1) + w.extent(i) - w.in[i] - w.before[i]
			w.after[i] = max(w.after[i], beyond)
		}
		ones := b.Ones(append([]int{x[1], 1}, w.kernel...)...)
		return []Value{b.convAdjoint(part, ones, x[1], w)}
	},
	Examples: []Example{
		{Name: "disjoint", Inputs: [][]int{{2, 3, 6, 4}}, Attrs: []onnx.Attr{
			{Name: "kernel_shape", Value: []int64{2, 2}}, {Name: "strides", Value: []int64{2, 2}}}},
		{Name: "a rest", Inputs: [][]int{{2, 3, 7, 5}}, Attrs: []onnx.Attr{
			{Name: "kernel_shape", Value: []int64{2, 2}}, {Name: "strides", Value: []int64{2, 2}}}},
		{Name: "padding doesn't count", Inputs: [][]int{{2, 3, 6, 5}}, Attrs: []onnx.Attr{
			{Name: "kernel_shape", Value: []int64{3, 3}}, {Name: "pads", Value: []int64{1, 1, 1, 1}}}},
		{Name: "padding counts", Inputs: [][]int{{2, 3, 6, 5}}, Attrs: []onnx.Attr{
			{Name: "kernel_shape", Value: []int64{3, 3}}, {Name: "pads", Value: []int64{1, 0, 1, 1}},
			{Name: "count_include_pad", Value: 1}}},
		{Name: "ceiling", Inputs: [][]int{{2, 3, 6, 7}}, Attrs: []onnx.Attr{
			{Name: "kernel_shape", Value: []int64{3, 3}}, {Name: "strides", Value: []int64{2, 2}},
			{Name: "ceil_mode", Value: 1}}},
		{Name: "ceiling and padding", Inputs: [][]int{{2, 3, 6, 7}}, Attrs: []onnx.Attr{
			{Name: "kernel_shape", Value: []int64{3, 2}}, {Name: "strides", Value: []int64{2, 2}},
			{Name: "ceil_mode", Value: 1},
			{Name: "pads", Value: []int64{1, 0, 1, 0}}}},
		{Name: "SAME_UPPER", Inputs: [][]int{{2, 3, 6, 7}}, Attrs: []onnx.Attr{
			{Name: "kernel_shape", Value: []int64{3, 3}}, {Name: "strides", Value: []int64{2, 2}},
			{Name: "auto_pad", Value: "SAME_UPPER"}}},
		{Name: "a signal", Inputs: [][]int{{2, 3, 9}}, Attrs: []onnx.Attr{
			{Name: "kernel_shape", Value: []int64{4}}, {Name: "strides", Value: []int64{3}}}},
	},
}

// tiles reports whether every input element is in exactly one window.
func (w window) tiles() bool {
	for i, k := range w.kernel {
		if w.stride[i] != k || w.dilation[i] != 1 || w.before[i] != 0 || w.out[i]*k != w.in[i] {
			return false
		}
	}
	return true
}

// divisors returns the number of elements of each window, in the rank of the image.
func (b *Builder) divisors(w window, padding bool) Value {
	if padding || w.tiles() {
		return b.Scalar(float32(size(w.kernel)))
	}
	v := alloc[float32](b, w.out...)
	for at := range v {
		v[at] = 1
	}
	behind := len(v) // elements per position of the axis before
	for i, o := range w.out {
		behind /= o
		for j := range o {
			k := 0
			for t := range w.kernel[i] {
				at := j*w.stride[i] + t*w.dilation[i] - w.before[i]
				if at >= 0 && at < w.in[i] {
					k++
				}
			}
			for from := j * behind; from < len(v); from += o * behind {
				for at := range v[from : from+behind] {
					v[from+at] *= float32(k)
				}
			}
		}
	}
	if !slices.ContainsFunc(v, func(c float32) bool { return c != v[0] }) {
		return b.Scalar(v[0])
	}
	return b.Floats(v, slices.Concat([]int{1, 1}, w.out)...)
}
