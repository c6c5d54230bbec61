package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Transpose permutes axes; the cotangent is permuted by the inverse.
var opTranspose = &Op{
	Type: "Transpose", Kind: Move,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		perm := n.Ints("perm")
		if perm == nil {
			for i := range b.Shape(n.Input[0]) {
				perm = append([]int{i}, perm...)
			}
		}
		return []Value{b.Transpose(dy[0], inverse(perm)...)}
	},
	Examples: []Example{
		{Name: "a cycle", Inputs: [][]int{{2, 3, 4, 5}},
			Attrs: []onnx.Attr{{Name: "perm", Value: []int64{0, 3, 1, 2}}}},
		{Name: "unstated", Inputs: [][]int{{2, 3, 4}}},
	},
}
