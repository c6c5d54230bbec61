package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// BatchNormalization is γ·(x − μ)/√(σ² + ε) + β per channel, with the statistics of training: an affine map,
// dx = dy·γ/√(σ² + ε). The factor is computed by nodes on the weights, which ONNX Runtime folds.
var opBatchNormalization = &Op{
	Type: "BatchNormalization", Kind: Affine, Roles: []Role{Data, Weight, Bias, Config, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		if n.Int("training_mode", 0) != 0 {
			b.Fail(n, "it is in training mode, which makes results batch-dependent")
			return nil
		}
		deviation := b.Unary("Sqrt", b.Add(n.Input[4], b.Scalar(n.Float("epsilon", 1e-5))))
		factor := b.Div(n.Input[1], deviation)
		return []Value{b.Mul(dy[0], b.channels(factor, len(b.Shape(n.Input[0]))))}
	},
	Examples: []Example{
		{Name: "images", Inputs: [][]int{{2, 3, 5, 5}, {3}, {3}, {3}, nil},
			Consts: map[int]any{4: []float32{0.5, 1, 3}}},
		{Name: "signals", Inputs: [][]int{{2, 3, 5}, {3}, {3}, {3}, nil},
			Consts: map[int]any{4: []float32{0.5, 1, 3}},
			Attrs:  []onnx.Attr{{Name: "epsilon", Value: float32(1e-3)}}},
		{Name: "vectors", Inputs: [][]int{{2, 3}, {3}, {3}, {3}, nil},
			Consts: map[int]any{4: []float32{0.5, 1, 3}}},
	},
}

// channels reshapes one number per channel to broadcast with [B, C, …] of the given rank.
func (b *Builder) channels(v Value, rank int) Value {
	shape := []int{size(b.Shape(v))}
	for range rank - 2 {
		shape = append(shape, 1)
	}
	return b.Reshape(v, shape...)
}
