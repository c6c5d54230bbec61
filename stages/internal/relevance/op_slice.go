package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Slice selects every step-th element between two bounds of some axes, in reverse for a negative step. The
// cotangent is moved back, with zeros in between.
var opSlice = &Op{
	Type: "Slice", Kind: Move, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		shape, out := b.Shape(n.Input[0]), b.Shape(n.Output[0])
		starts, axes, steps := b.constInts(n, 1), b.constInts(n, 3), b.constInts(n, 4)
		before, after := make([]int, len(shape)), make([]int, len(shape))
		g := dy[0]
		var back []int // reversed axes
		for i, start := range starts {
			axis, step := i, 1
			if axes != nil {
				axis = axes[i]
			}
			if axis < 0 {
				axis += len(shape)
			}
			if steps != nil {
				step = steps[i]
			}
			d, o := shape[axis], out[axis]
			if start < 0 {
				start += d
			}
			if step > 0 {
				start = min(max(start, 0), d)
			} else { // the last selected element becomes the first
				start = min(max(start, 0), d-1) + step*(o-1)
				step = -step
				back = append(back, axis)
			}
			g = b.dilate(g, axis, step)
			before[axis], after[axis] = start, d-start-b.Shape(g)[axis]
		}
		if back != nil {
			g = b.Reverse(g, back...)
		}
		return []Value{b.Pad(g, before, after)}
	},
	Examples: []Example{
		{Name: "a token", Inputs: [][]int{{2, 5, 4}, nil}, Consts: map[int]any{
			1: []int64{0}, 2: []int64{1}, 3: []int64{1}}},
		{Name: "ends counted from behind", Inputs: [][]int{{2, 5, 6}, nil}, Consts: map[int]any{
			1: []int64{1, -5}, 2: []int64{1 << 40, -1}, 3: []int64{1, -1}}},
		{Name: "every other", Inputs: [][]int{{2, 7, 6}, nil}, Consts: map[int]any{
			1: []int64{1, 0}, 2: []int64{7, 6}, 3: []int64{1, 2}, 4: []int64{2, 3}}},
		{Name: "backwards", Inputs: [][]int{{2, 7, 6}, nil}, Consts: map[int]any{
			1: []int64{-1}, 2: []int64{-100}, 3: []int64{1}, 4: []int64{-1}}},
		{Name: "backwards in steps", Inputs: [][]int{{2, 7, 6}, nil}, Consts: map[int]any{
			1: []int64{5, 4}, 2: []int64{0, 0}, 3: []int64{1, 2}, 4: []int64{-2, -3}}},
		{Name: "axes unstated", Inputs: [][]int{{4, 5}, nil}, Consts: map[int]any{
			1: []int64{1, 2}, 2: []int64{3, 5}}},
	},
}

// dilate emits x with step−1 zeros between the elements along an axis.
func (b *Builder) dilate(x Value, axis, step int) Value {
	shape := b.Shape(x)
	if step == 1 || shape[axis] == 1 {
		return x
	}
	y := b.Reshape(x, slices.Concat(shape[:axis+1], []int{1}, shape[axis+1:])...)
	y = b.padAxis(y, axis+1, 0, step-1)
	wide := slices.Clone(shape)
	wide[axis] *= step
	return b.padAxis(b.Reshape(y, wide...), axis, 0, 1-step)
}
