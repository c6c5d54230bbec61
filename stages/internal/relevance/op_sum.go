package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Sum adds its inputs with broadcasting.
var opSum = &Op{
	Type: "Sum", Kind: Sum,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value { return b.shared(n, dy[0]) },
	Examples: []Example{
		{Name: "three", Inputs: [][]int{{2, 3, 5}, {2, 3, 5}, {2, 1, 5}}},
		{Name: "one", Inputs: [][]int{{2, 3}}},
	},
}

// shared emits the cotangent of every input of a sum.
func (b *Builder) shared(n onnx.Node, dy Value) []Value {
	back := make([]Value, len(n.Input))
	for i, x := range n.Input {
		if b.dynamic(x) {
			back[i] = b.Unbroadcast(dy, b.Shape(x))
		}
	}
	return back
}
