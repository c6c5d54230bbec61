package relevance

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// A window is the geometry of a Conv or of a pool over the spatial axes: output element o reads the input
// elements stride·o + dilation·k − before, for k below kernel.
type window struct {
	in, out, kernel, stride, dilation, before, after []int
}

// window returns the geometry of n, whose first input and output are images [B, C, …]; a nil kernel means the
// attribute's. It panics if an attribute doesn't have one number per spatial axis, which fails the node.
func (b *Builder) window(n onnx.Node, kernel []int) window {
	x, y := b.Shape(n.Input[0]), b.Shape(n.Output[0])
	rank := len(x) - 2
	if rank < 1 || len(y) < 2 {
		panic(fmt.Sprintf("windows from shape %v to %v: spatial axes are missing", x, y))
	}
	if kernel == nil {
		kernel = n.Ints("kernel_shape")
	}
	w := window{
		in: x[2:], out: y[2:], kernel: kernel,
		stride: n.Ints("strides"), dilation: n.Ints("dilations"),
		before: make([]int, rank), after: make([]int, rank),
	}
	if w.stride == nil {
		w.stride = slices.Repeat([]int{1}, rank)
	}
	if w.dilation == nil {
		w.dilation = slices.Repeat([]int{1}, rank)
	}
	auto := n.Text("auto_pad", "NOTSET")
	pads := n.Ints("pads")
	if len(w.out) != rank || len(w.kernel) != rank || len(w.stride) != rank || len(w.dilation) != rank ||
		pads != nil && len(pads) != 2*rank {
		panic(fmt.Sprintf("windows of %v with strides %v, dilations %v and pads %v from shape %v to %v",
			w.kernel, w.stride, w.dilation, pads, x, y))
	}
	for i := range rank {
		switch auto {
		case "SAME_UPPER", "SAME_LOWER":
			all := max(0, w.stride[i]*(w.out[i]-1)+w.extent(i)-w.in[i])
			w.before[i] = all / 2
			if auto == "SAME_LOWER" {
				w.before[i] = all - all/2
			}
			w.after[i] = all - w.before[i]
		case "NOTSET":
			if pads != nil {
				w.before[i], w.after[i] = pads[i], pads[rank+i]
			}
		}
	}
	return w
}

// extent returns the number of input elements that a window spans along axis i.
func (w window) extent(i int) int { return w.dilation[i]*(w.kernel[i]-1) + 1 }

// disjoint reports whether no input element is in two windows.
func (w window) disjoint() bool {
	for i := range w.kernel {
		if w.extent(i) > w.stride[i] && w.out[i] > 1 {
			return false
		}
	}
	return true
}

// A phased is the geometry of the stride-1 Conv that is the adjoint of another; see [Builder.convAdjoint].
type phased struct {
	kernel        []int // number of elements of a phase's kernel
	first         []int // index of the phase group of the first input element
	before, after []int
}

// phased returns the geometry of w's adjoint, or false if that isn't a Conv.
func (w window) phased() (p phased, ok bool) {
	for i, s := range w.stride {
		if s > 1 && w.dilation[i] > 1 && w.kernel[i] > 1 {
			return phased{}, false
		}
		t := (w.kernel[i] + s - 1) / s
		first := w.before[i] / s
		last := (w.before[i] + w.in[i] - 1) / s
		before, after := w.dilation[i]*(t-1)-first, last-w.out[i]+1
		if before < 0 || after < 0 {
			return phased{}, false
		}
		p.kernel, p.first = append(p.kernel, t), append(p.first, first)
		p.before, p.after = append(p.before, before), append(p.after, after)
	}
	return p, true
}
