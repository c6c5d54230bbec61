package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Gather selects slices along an axis by constant indices. The cotangents are moved back: by padding if the
// indices are consecutive, by another Gather if they are distinct, and otherwise by a product with the
// selection matrix.
var opGather = &Op{
	Type: "Gather", Kind: Move, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		shape := b.Shape(n.Input[0])
		axis := b.axis(n, 0, len(shape))
		d := shape[axis]
		picked := b.constInts(n, 1)
		if picked == nil {
			return nil
		}
		for i, k := range picked {
			if k < 0 {
				picked[i] += d
			}
		}
		flat := slices.Clone(shape)
		flat[axis] = len(picked)
		g := b.Reshape(dy[0], flat...)
		place := alloc[int](b, d) // by slice of the input: its index in g
		for i := range place {
			place[i] = -1
		}
		row, once := true, true
		for i, k := range picked {
			row = row && k == picked[0]+i
			once = once && place[k] < 0
			place[k] = i
		}
		switch {
		case row:
			return []Value{b.padAxis(g, axis, picked[0], d-picked[0]-len(picked))}
		case !once:
			return []Value{b.collect(g, axis, d, picked)}
		}
		if i := slices.Index(place, -1); i >= 0 { // a slice of zeros for all that weren't selected
			g = b.padAxis(g, axis, 0, 1)
			for i := range place {
				if place[i] < 0 {
					place[i] = len(picked)
				}
			}
		}
		return []Value{b.Gather(g, axis, place...)}
	},
	Examples: []Example{
		{Name: "the class token", Inputs: [][]int{{2, 5, 4}, nil}, Consts: map[int]any{1: int64(0)},
			Attrs: []onnx.Attr{{Name: "axis", Value: 1}}},
		{Name: "the last", Inputs: [][]int{{2, 5, 4}, nil}, Consts: map[int]any{1: int64(-1)},
			Attrs: []onnx.Attr{{Name: "axis", Value: -2}}},
		{Name: "a row", Inputs: [][]int{{2, 5, 4}, nil}, Consts: map[int]any{1: []int64{1, 2, 3}},
			Attrs: []onnx.Attr{{Name: "axis", Value: 1}}},
		{Name: "a permutation", Inputs: [][]int{{2, 5, 4}, nil},
			Consts: map[int]any{1: []int64{1, 4, 0, 2, 3}}, Attrs: []onnx.Attr{{Name: "axis", Value: 1}}},
		{Name: "some", Inputs: [][]int{{2, 5, 4}, nil}, Consts: map[int]any{1: []int64{3, 1, 4}},
			Attrs: []onnx.Attr{{Name: "axis", Value: 1}}},
		{Name: "one twice", Inputs: [][]int{{2, 5, 4}, nil}, Consts: map[int]any{1: []int64{3, 1, 3, 0}},
			Attrs: []onnx.Attr{{Name: "axis", Value: 1}}},
		{Name: "a table", Inputs: [][]int{{2, 5, 4}, nil},
			Consts: map[int]any{1: onnx.IntTensor("", []int64{3, 1, 3, 0, 2, 2}, 2, 3)},
			Attrs:  []onnx.Attr{{Name: "axis", Value: 2}}},
		{Name: "axis unstated", Inputs: [][]int{{5, 4}, nil}, Consts: map[int]any{1: []int64{3, 1}}},
	},
}
