package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Clip bounds its input; the cotangent passes strictly between the bounds, as in torch's ReLU6. The mask is
// computed from the output, so that the input needn't be kept.
var opClip = &Op{
	Type: "Clip", Kind: Select, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		lo, hi := n.In(1), n.In(2)
		if lo == "" && hi == "" {
			return []Value{dy[0]}
		}
		if b.flows[lo] || b.flows[hi] {
			b.Fail(n, "its bounds depend on the image")
			return nil
		}
		return []Value{b.Mul(dy[0], b.Between(n.Output[0], lo, hi))}
	},
	Examples: []Example{
		{Name: "both", Inputs: [][]int{{2, 3, 5}}, Draw: apart,
			Consts: map[int]any{1: float32(-100.25), 2: float32(99.75)}},
		{Name: "below", Inputs: [][]int{{2, 3, 5}}, Draw: apart, Consts: map[int]any{1: float32(0.1)}},
		{Name: "above", Inputs: [][]int{{2, 3, 5}}, Draw: apart, Consts: map[int]any{2: float32(0.1)}},
		{Name: "neither", Inputs: [][]int{{2, 3, 5}}},
	},
}
