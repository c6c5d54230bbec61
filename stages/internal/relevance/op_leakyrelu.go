package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// LeakyRelu is x for x > 0 and otherwise αx: dx = dy·(α + (1 − α)·[x > 0]).
var opLeakyRelu = &Op{
	Type: "LeakyRelu", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		alpha := n.Float("alpha", 0.01)
		slope := b.Add(b.Mul(b.Greater(n.Input[0], b.Scalar(0)), b.Scalar(1-alpha)), b.Scalar(alpha))
		return []Value{b.Mul(dy[0], slope)}
	},
	Examples: []Example{
		{Name: "any", Inputs: [][]int{{2, 3, 5}}},
		{Name: "steeper", Inputs: [][]int{{2, 3, 5}},
			Attrs: []onnx.Attr{{Name: "alpha", Value: float32(0.5)}}},
	},
}
