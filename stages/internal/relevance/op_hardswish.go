package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// HardSwish is x·h(x) with h the HardSigmoid of α = 1/6, β = 1/2: dx = dy·(h + x/6·[0 < h < 1]).
var opHardSwish = &Op{
	Type: "HardSwish", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x := n.Input[0]
		h := b.Emit("HardSigmoid", b.Shape(x), []Value{x}, onnx.Attr{Name: "alpha", Value: float32(1. / 6)},
			onnx.Attr{Name: "beta", Value: float32(0.5)})
		slope := b.Mul(b.Mul(x, b.Scalar(1./6)), b.Between(h, b.Scalar(0), b.Scalar(1)))
		return []Value{b.Mul(dy[0], b.Add(h, slope))}
	},
	Examples: []Example{
		{Name: "inside", Inputs: [][]int{{2, 3, 5}}},
		{Name: "outside too", Inputs: [][]int{{2, 3, 5}}, Draw: coarse},
	},
}
