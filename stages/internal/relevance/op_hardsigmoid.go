package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// HardSigmoid is αx + β clipped to [0, 1]: the cotangent passes times α strictly between the bounds.
var opHardSigmoid = &Op{
	Type: "HardSigmoid", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		inside := b.Between(n.Output[0], b.Scalar(0), b.Scalar(1))
		return []Value{b.Mul(b.Mul(dy[0], b.Scalar(n.Float("alpha", 0.2))), inside)}
	},
	Examples: []Example{
		{Name: "unstated", Inputs: [][]int{{2, 3, 5}}, Draw: coarse},
		{Name: "torch's", Inputs: [][]int{{2, 3, 5}}, Draw: coarse,
			Attrs: []onnx.Attr{{Name: "alpha", Value: float32(1. / 6)}}},
	},
}
