package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Split splits its input along an axis; the cotangents of the parts are joined, with zeros for a part without
// one.
var opSplit = &Op{
	Type: "Split", Kind: Move, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		shape := b.Shape(n.Input[0])
		axis := b.axis(n, 0, len(shape))
		var parts []Value
		sizes := b.constInts(n, 1)
		for i, g := range dy {
			part := slices.Clone(shape)
			switch {
			case sizes != nil:
				part[axis] = sizes[i]
			default: // equal parts, the last one smaller
				each := (shape[axis] + len(dy) - 1) / len(dy)
				part[axis] = min(each, shape[axis]-i*each)
			}
			if g == "" {
				g = b.Zeros(part...)
			}
			parts = append(parts, g)
		}
		return []Value{b.Concat(axis, parts...)}
	},
	Examples: []Example{
		{Name: "equal parts", Inputs: [][]int{{2, 6, 4}}, Outputs: 3,
			Attrs: []onnx.Attr{{Name: "axis", Value: 1}}},
		{Name: "sizes", Inputs: [][]int{{2, 6, 4}, nil}, Outputs: 2, Consts: map[int]any{1: []int64{4, 2}},
			Attrs: []onnx.Attr{{Name: "axis", Value: -2}}},
	},
}
