package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Tile repeats its input along axes; the cotangents of the copies are summed.
var opTile = &Op{
	Type: "Tile", Kind: Move, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		shape := b.Shape(n.Input[0])
		repeats := b.constInts(n, 1)
		if len(repeats) != len(shape) {
			return nil
		}
		var apart, axes []int
		for i, d := range shape {
			if repeats[i] != 1 {
				axes = append(axes, len(apart))
				apart = append(apart, repeats[i])
			}
			apart = append(apart, d)
		}
		return []Value{b.Sum(b.Reshape(dy[0], apart...), axes, false)}
	},
	Examples: []Example{
		{Name: "two axes", Inputs: [][]int{{2, 3, 5}, nil}, Consts: map[int]any{1: []int64{1, 2, 3}}},
		{Name: "none", Inputs: [][]int{{2, 3}, nil}, Consts: map[int]any{1: []int64{1, 1}}},
	},
}
