package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// ThresholdedRelu is x for x > α and otherwise 0.
var opThresholdedRelu = &Op{
	Type: "ThresholdedRelu", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return []Value{b.Mul(dy[0], b.Greater(n.Input[0], b.Scalar(n.Float("alpha", 1))))}
	},
	Examples: []Example{
		{Name: "any", Inputs: [][]int{{2, 3, 5}}, Draw: apart,
			Attrs: []onnx.Attr{{Name: "alpha", Value: float32(10.25)}}},
	},
}
