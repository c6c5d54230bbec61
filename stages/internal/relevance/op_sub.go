package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Sub is a difference with broadcasting: the second operand gets the negated cotangent.
var opSub = &Op{
	Type: "Sub", Kind: Sum,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x, y := n.Input[0], n.Input[1]
		back := []Value{"", ""}
		if b.dynamic(x) {
			back[0] = b.Unbroadcast(dy[0], b.Shape(x))
		}
		if b.dynamic(y) {
			back[1] = b.Unary("Neg", b.Unbroadcast(dy[0], b.Shape(y)))
		}
		return back
	},
	Examples: []Example{
		{Name: "equal shapes", Inputs: [][]int{{2, 3, 5}, {2, 3, 5}}},
		{Name: "a mean", Inputs: [][]int{{2, 3, 5}, {2, 3, 1}}},
		{Name: "from one", Inputs: [][]int{{2, 3, 5}, nil}, Consts: map[int]any{1: float32(1)}},
	},
}
