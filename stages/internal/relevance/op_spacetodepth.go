package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// SpaceToDepth arranges squares of s × s positions as s² channels, indexed (row, column, channel). The
// cotangent is rearranged back.
var opSpaceToDepth = &Op{
	Type: "SpaceToDepth", Kind: Move,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x, s := b.Shape(n.Input[0]), n.Int("blocksize", 1)
		g := b.Reshape(dy[0], x[0], s, s, x[1], x[2]/s, x[3]/s)
		return []Value{b.Reshape(b.Transpose(g, 0, 3, 4, 1, 5, 2), x...)}
	},
	Examples: []Example{{Name: "squares", Inputs: [][]int{{2, 3, 4, 6}},
		Attrs: []onnx.Attr{{Name: "blocksize", Value: 2}}}},
}
