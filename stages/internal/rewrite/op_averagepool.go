package rewrite

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// AveragePool got dilations at 19. If its padding counts, positions beyond the padding that a window
// reaches by ceil_mode don't, as in PyTorch: so opset 19 defines it, and ONNX Runtime divides accordingly
// from release 1.29 on, for all opsets. Earlier releases divide such a window by the size of its kernel, up
// to opset 18 and in the blocked layout.
var averagePool = []converter{{"AveragePool", Oldest, Newest, func(e *edit, n onnx.Node) error {
	if slices.ContainsFunc(n.Ints("dilations"), func(d int) bool { return d != 1 }) {
		return fmt.Errorf("opset %d has no dilated AveragePool", Opset)
	}
	drop(n, "dilations")
	if !CountsBeyond(n) {
		e.keep(n)
		return nil
	}
	return e.counted(n)
}}}

// CountsBeyond reports whether a node is an AveragePool whose padding counts and whose windows may reach
// beyond it. Automatic padding covers all windows.
func CountsBeyond(n onnx.Node) bool {
	auto := n.Text("auto_pad", "NOTSET")
	return n.OpType == "AveragePool" && n.Int("count_include_pad", 0) != 0 && n.Int("ceil_mode", 0) != 0 &&
		auto != "SAME_UPPER" && auto != "SAME_LOWER"
}

// counted writes an AveragePool whose padding counts: one that divides by the size of its kernel, with all
// the padding that its windows reach, times the ratio of that size to the number of counted positions.
func (e *edit) counted(n onnx.Node) error {
	in, err := e.fixed(n.In(0))
	if err != nil {
		return err
	}
	kernel, strides, pads := n.Ints("kernel_shape"), n.Ints("strides"), n.Ints("pads")
	axes := len(kernel)
	if pads == nil {
		pads = make([]int, 2*axes)
	}
	if strides == nil {
		strides = slices.Repeat([]int{1}, axes)
	}
	if len(in) != axes+2 || len(pads) != 2*axes || len(strides) != axes {
		return fmt.Errorf("its kernel_shape, strides and pads %v, %v and %v don't fit %v", kernel, strides,
			pads, in)
	}
	factors, shape, reached := []float32{1}, []int{1, 1}, slices.Clone(pads)
	for i, k := range kernel {
		size, after := in[i+2], pads[axes+i]
		last := min(size+after-k+strides[i]-1, size-1) // the last start of a window
		var longer []float32
		for begin := -pads[i]; begin <= last; begin += strides[i] {
			count := min(k, size+after-begin)
			if count < 1 {
				return fmt.Errorf("its pads %v leave nothing of a window", pads)
			}
			longer = append(longer, float32(k)/float32(count))
			reached[axes+i] = max(0, begin+k-size)
		}
		if longer == nil {
			return fmt.Errorf("its kernel_shape %v is larger than the padded image", kernel)
		}
		all, err := e.matrix(len(factors), len(longer))
		if err != nil {
			return err
		}
		for a, f := range factors {
			for b, l := range longer {
				all[a*len(longer)+b] = f * l
			}
		}
		factors, shape = all, append(shape, len(longer))
	}
	drop(n, "ceil_mode")
	drop(n, "auto_pad")
	setInts(n, "pads", reached)
	e.keep(n)
	if out := n.Output[0]; slices.ContainsFunc(factors, func(f float32) bool { return f != 1 }) {
		n.Output[0] = e.value(out, n.OpType)
		e.to(out, "Mul",
			[]string{n.Output[0], e.weight(onnx.FloatTensor(e.m.Fresh(out+"/factors"), factors, shape...))})
	}
	return nil
}
