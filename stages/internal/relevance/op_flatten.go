package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Flatten keeps the elements and their order.
var opFlatten = &Op{
	Type: "Flatten", Kind: Move,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Reshape(dy[0], b.Shape(n.Input[0])...)}
	},
	Examples: []Example{
		{Name: "features", Inputs: [][]int{{2, 3, 4}}},
		{Name: "later", Inputs: [][]int{{2, 3, 4}}, Attrs: []onnx.Attr{{Name: "axis", Value: -1}}},
	},
}
