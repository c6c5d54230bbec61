package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// convAdjoint emits the adjoint of a Conv with respect to its image: dy [B, M, out…] becomes [B, C, in…]
// through the weights [M, C/group, kernel…] of the Conv.
//
// It is emitted as a Conv, because ConvTranspose is several times slower. Along one axis y[o] = Σₖ W[k]·x[s·o
// + d·k − p], so dx[i] = Σ W[k]·dy[o] over s·o + d·k = i + p. With s = 1 that is the correlation of dy with
// the reversed weights, at the same dilation. With s > 1, d = 1 write i + p = s·q + r and k = s·t + r: for
// each of the s phases r, dx[q] = Σₜ W[s·t + r]·dy[q − t], a stride-1 Conv with the kernel of every s-th
// weight. All phases are the channels of one Conv, then interleaved. The nodes on the weights are folded by
// ONNX Runtime when it loads the program.
//
// Interleaving costs time, and the phases' kernels have zeros if s doesn't divide k. With a stride,
// ConvTranspose (a large matrix product and then sums on one core) is therefore faster, except for large
// kernels and few filters. Measured for 8 images on one core, Conv and ConvTranspose: depthwise, stride 2, 96
// × 112²: 72 and 56 ms; 144 × 56²: 31 and 22; one group, 32 filters of 3² on 3 × 224²: 20 and 11; 128 filters
// of 3² on 64 × 56²: 32 and 22; 64 filters of 7² on 3 × 224²: 71 and 80. With stride 1, 2 images: 64 filters
// of 3² on 64 × 56²: 4.5 and 8.4; depthwise, 96 × 112²: 7.5 and 26.
func (b *Builder) convAdjoint(dy, weights Value, group int, w window) Value {
	p, ok := w.phased()
	const enough = 128 // filters from which on the matrix product outweighs the sums
	phases := size(w.stride)
	large := group == 1 && size(w.kernel) > 4*phases && b.Shape(weights)[0] < enough
	if !ok || phases > 1 && !large {
		return b.convTranspose(dy, weights, group, w)
	}
	kernel, rank := p.kernel, len(w.in)
	ws := b.Shape(weights)
	m, c := ws[0]/group, ws[1]
	channels := c * group

	// [M, C/g, k…] → [g·C/g, M/g, t₁·s₁, t₂·s₂, …]
	v := b.swapChannels(weights, group)
	grow := make([]int, rank+2)
	for i, t := range kernel {
		grow[2+i] = t*w.stride[i] - w.kernel[i]
	}
	v = b.Pad(v, make([]int, rank+2), grow)
	// → [C, s₁, s₂, …, M/g, t₁, t₂, …] → [C·s₁·s₂·…, M/g, t…], reversed along t
	split, perm := []int{channels, m}, []int{0}
	for i, t := range kernel {
		split = append(split, t, w.stride[i])
		perm = append(perm, 3+2*i)
	}
	perm = append(perm, 1)
	for i := range kernel {
		perm = append(perm, 2+2*i)
	}
	v = b.Transpose(b.Reshape(v, split...), perm...)
	v = b.Reshape(v, append([]int{channels * phases, m}, kernel...)...)
	if axes := longAxes(kernel); axes != nil {
		v = b.Reverse(v, axes...)
	}

	shape := []int{b.Shape(dy)[0], channels * phases}
	for i := range kernel {
		shape = append(shape, w.out[i]+p.before[i]+p.after[i]-w.dilation[i]*(kernel[i]-1))
	}
	y := b.Emit("Conv", shape, []Value{dy, v},
		onnx.Attr{Name: "kernel_shape", Value: longs(kernel)},
		onnx.Attr{Name: "pads", Value: longs(slices.Concat(p.before, p.after))},
		onnx.Attr{Name: "dilations", Value: longs(w.dilation)},
		onnx.Attr{Name: "group", Value: group})
	if phases == 1 {
		return y
	}
	y = b.interleave(y, w.stride)
	lo, hi := []int{0, 0}, []int{shape[0], channels}
	for i, s := range w.stride {
		first := w.before[i] - p.first[i]*s
		lo, hi = append(lo, first), append(hi, first+w.in[i])
	}
	return b.Slice(y, lo, hi)
}

// swapChannels emits weights [g·M/g, C/g, k…] as [g·C/g, M/g, k…].
func (b *Builder) swapChannels(weights Value, group int) Value {
	s := b.Shape(weights)
	m, c, k := s[0]/group, s[1], s[2:]
	v := b.Reshape(weights, slices.Concat([]int{group, m, c}, k)...)
	perm := []int{0, 2, 1}
	for i := range k {
		perm = append(perm, 3+i)
	}
	if m == 1 || c == 1 { // the order of elements stays
		return b.Reshape(weights, slices.Concat([]int{group * c, m}, k)...)
	}
	return b.Reshape(b.Transpose(v, perm...), slices.Concat([]int{group * c, m}, k)...)
}

// interleave emits [B, C·s₁·s₂·…, q₁, q₂, …] as [B, C, q₁·s₁, q₂·s₂, …], axis by axis from the last: moving
// one axis at a time is twice as fast as DepthToSpace, which moves all.
func (b *Builder) interleave(y Value, stride []int) Value {
	shape := b.Shape(y)
	out := []int{shape[0], shape[1] / size(stride)}
	for i, s := range stride {
		out = append(out, shape[2+i]*s)
	}
	inner := 1 // elements interleaved so far
	for i := len(stride) - 1; i >= 0; i-- {
		s, q := stride[i], shape[2+i]
		before, between := shape[0]*shape[1]/size(stride[i:]), size(shape[2:2+i])
		y = b.Transpose(b.Reshape(y, before, s, between, q, inner), 0, 2, 3, 1, 4)
		inner *= q * s
	}
	return b.Reshape(y, out...)
}

// convTranspose emits the adjoint of a Conv as ConvTranspose, which is always possible.
func (b *Builder) convTranspose(dy, weights Value, group int, w window) Value {
	shape := []int{b.Shape(dy)[0], b.Shape(weights)[1] * group}
	var rest []int // elements after the last window
	for i := range w.in {
		shape = append(shape, w.in[i])
		rest = append(rest, w.in[i]+w.before[i]+w.after[i]-w.extent(i)-w.stride[i]*(w.out[i]-1))
	}
	return b.Emit("ConvTranspose", shape, []Value{dy, weights},
		onnx.Attr{Name: "kernel_shape", Value: longs(w.kernel)},
		onnx.Attr{Name: "strides", Value: longs(w.stride)},
		onnx.Attr{Name: "pads", Value: longs(slices.Concat(w.before, w.after))},
		onnx.Attr{Name: "dilations", Value: longs(w.dilation)},
		onnx.Attr{Name: "output_padding", Value: longs(rest)},
		onnx.Attr{Name: "group", Value: group})
}

// longAxes returns the spatial axes of weights along which the kernel has more than one element, nil if there
// are none.
func longAxes(kernel []int) []int {
	var axes []int
	for i, k := range kernel {
		if k > 1 {
			axes = append(axes, 2+i)
		}
	}
	return axes
}

func longs(v []int) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}
