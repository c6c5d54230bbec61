package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// axis returns the axis that an attribute names, counted from the front.
func (b *Builder) axis(n onnx.Node, unstated, rank int) int {
	a := n.Int("axis", unstated)
	if a < 0 {
		a += rank
	}
	return a
}

// constInts returns the integers of input i; nil if the node doesn't have it. An input that isn't a constant
// is a failure.
func (b *Builder) constInts(n onnx.Node, i int) []int {
	name := n.In(i)
	if name == "" {
		return nil
	}
	long, ok := b.g.Int64s(name)
	if !ok {
		b.Fail(n, "its input %q is not a constant", name)
		return nil
	}
	out := make([]int, len(long))
	for k, v := range long {
		out[k] = int(v)
	}
	return out
}

// reduced returns the axes that a reduction runs over, sorted. They stand in an attribute or in input 1, as
// the operator's version has it.
func (b *Builder) reduced(n onnx.Node, rank int) []int {
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

// count returns how many elements a reduction over the axes takes together.
func count(shape, axes []int) int {
	n := 1
	for _, a := range axes {
		n *= shape[a]
	}
	return n
}
