package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Pad adds elements around its input: a constant, or with the modes edge and reflect copies. Negative pads
// remove elements. The cotangent of a copy is added to that of its original, by a product with the matrix of
// copies.
var opPad = &Op{
	Type: "Pad", Kind: Move, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		shape := b.Shape(n.Input[0])
		pads := b.constInts(n, 1)
		if len(pads) != 2*len(shape) {
			return nil
		}
		before, after := pads[:len(shape)], pads[len(shape):]
		mode := n.Text("mode", "constant")
		if mode == "constant" {
			return []Value{b.Pad(dy[0], negative(before), negative(after))}
		}
		g := dy[0]
		for axis, d := range shape {
			if before[axis] == 0 && after[axis] == 0 {
				continue
			}
			from := alloc[int](b, b.Shape(g)[axis])
			for i := range from {
				from[i] = i - before[axis]
				if mode == "reflect" && from[i] < 0 {
					from[i] = -from[i]
				}
				if mode == "reflect" && from[i] >= d {
					from[i] = 2*(d-1) - from[i]
				}
				from[i] = min(max(from[i], 0), d-1)
			}
			g = b.collect(g, axis, d, from)
		}
		return []Value{g}
	},
	Examples: []Example{
		{Name: "zeros", Inputs: [][]int{{2, 3, 4, 5}, nil},
			Consts: map[int]any{1: []int64{0, 0, 1, 2, 0, 0, 0, 3}}},
		{Name: "a constant", Inputs: [][]int{{2, 3, 4}, nil},
			Consts: map[int]any{1: []int64{0, 1, 0, 0, 2, 1}, 2: float32(3)}},
		{Name: "taking away", Inputs: [][]int{{2, 5, 6}, nil},
			Consts: map[int]any{1: []int64{0, -1, 2, 0, 1, -2}}},
		{Name: "reflect", Inputs: [][]int{{2, 3, 4, 5}, nil},
			Consts: map[int]any{1: []int64{0, 0, 1, 2, 0, 0, 3, 0}},
			Attrs:  []onnx.Attr{{Name: "mode", Value: "reflect"}}},
		{Name: "edge", Inputs: [][]int{{2, 3, 4, 5}, nil},
			Consts: map[int]any{1: []int64{0, 0, 1, 2, 0, 0, 3, 0}},
			Attrs:  []onnx.Attr{{Name: "mode", Value: "edge"}}},
	},
}

func negative(v []int) []int {
	out := slices.Clone(v)
	for i := range out {
		out[i] = -out[i]
	}
	return out
}

// collect emits, along an axis, the sums of the elements of g copied from the same index: from[i] < d is the
// index from which element i was copied.
func (b *Builder) collect(g Value, axis, d int, from []int) Value {
	matrix := alloc[float32](b, len(from), d)
	for i, k := range from {
		matrix[i*d+k] = 1
	}
	return b.along(g, axis, b.Floats(matrix, len(from), d))
}
