package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Dropout is the identity at inference.
var opDropout = &Op{
	Type: "Dropout", Kind: Move, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		if training := n.In(2); training != "" {
			t := b.g.Weight(training)
			if t == nil || len(t.RawData) != 1 || t.RawData[0] != 0 {
				b.Fail(n, "it may be in training mode, which makes results random")
				return nil
			}
		}
		return []Value{dy[0]}
	},
	Examples: []Example{
		{Name: "plain", Inputs: [][]int{{2, 3}}},
		{Name: "off", Inputs: [][]int{{2, 3}, nil, nil}, Consts: map[int]any{1: float32(0.5), 2: false}},
	},
}
