package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Concat joins its inputs along an axis; each gets its part of the cotangent.
var opConcat = &Op{
	Type: "Concat", Kind: Move,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		shape := b.Shape(n.Output[0])
		axis := b.axis(n, 0, len(shape))
		from, to := make([]int, len(shape)), slices.Clone(shape)
		back := make([]Value, len(n.Input))
		for i, x := range n.Input {
			to[axis] = from[axis] + b.Shape(x)[axis]
			if b.dynamic(x) {
				back[i] = b.Slice(dy[0], from, to)
			}
			from[axis] = to[axis]
		}
		return back
	},
	Examples: []Example{
		{Name: "channels", Inputs: [][]int{{2, 3, 4}, {2, 1, 4}, {2, 2, 4}},
			Attrs: []onnx.Attr{{Name: "axis", Value: 1}}},
		{Name: "a constant in front", Inputs: [][]int{{3, 1, 4}, {3, 5, 4}}, Flow: []int{1},
			Attrs: []onnx.Attr{{Name: "axis", Value: -2}}},
		{Name: "one", Inputs: [][]int{{2, 3}}, Attrs: []onnx.Attr{{Name: "axis", Value: 1}}},
	},
}
