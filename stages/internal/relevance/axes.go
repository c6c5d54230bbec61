package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// axis returns the attribute axis as a non-negative number.
func (b *Builder) axis(n onnx.Node, unstated, rank int) int {
	a := n.Int("axis", unstated)
	if a < 0 {
		a += rank
	}
	return a
}

// constInts returns the integers of input i, nil if the node doesn't have that input. It fails if the input
// isn't a constant.
func (b *Builder) constInts(n onnx.Node, i int) []int {
	name := n.In(i)
	if name == "" {
		return nil
	}
	long, ok := b.g.Int64s(name)
	if !ok {
		b.Fail(n, "its input %q isn't a constant", name)
		return nil
	}
	out := make([]int, len(long))
	for k, v := range long {
		out[k] = int(v)
	}
	return out
}

// reducedAxes returns the axes of a reduction, sorted. Depending on the operator's version they are an
// attribute or input 1.
func (b *Builder) reducedAxes(n onnx.Node, rank int) []int {
	axes := n.Ints("axes")
	if axes == nil {
		axes = b.constInts(n, 1)
	}
	if len(axes) == 0 {
		if n.Int("noop_with_empty_axes", 0) != 0 {
			return nil
		}
		for i := range rank {
			axes = append(axes, i)
		}
	}
	axes = slices.Clone(axes)
	for i, a := range axes {
		if a < 0 {
			axes[i] += rank
		}
	}
	slices.Sort(axes)
	return axes
}

// kept returns a shape with size 1 at the axes.
func kept(shape, axes []int) []int {
	out := slices.Clone(shape)
	for _, a := range axes {
		out[a] = 1
	}
	return out
}

// count returns the number of elements per result of a reduction over the axes.
func count(shape, axes []int) int {
	n := 1
	for _, a := range axes {
		n *= shape[a]
	}
	return n
}
