package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// DepthToSpace arranges s² channels as squares of s × s positions: mode DCR splits a channel's index into
// (row, column, channel), mode CRD into (channel, row, column). The cotangent is rearranged back.
var opDepthToSpace = &Op{
	Type: "DepthToSpace", Kind: Move,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x, s := b.Shape(n.Input[0]), n.Int("blocksize", 1)
		g := b.Reshape(dy[0], x[0], x[1]/(s*s), x[2], s, x[3], s)
		if n.Text("mode", "DCR") == "CRD" {
			g = b.Transpose(g, 0, 1, 3, 5, 2, 4)
		} else {
			g = b.Transpose(g, 0, 3, 5, 1, 2, 4)
		}
		return []Value{b.Reshape(g, x...)}
	},
	Examples: []Example{
		{Name: "DCR", Inputs: [][]int{{2, 12, 2, 3}}, Attrs: []onnx.Attr{{Name: "blocksize", Value: 2}}},
		{Name: "CRD", Inputs: [][]int{{2, 9, 2, 3}},
			Attrs: []onnx.Attr{{Name: "blocksize", Value: 3}, {Name: "mode", Value: "CRD"}}},
	},
}
