package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Max is the largest of its inputs, element-wise with broadcasting; ties share the cotangent.
var opMax = &Op{
	Type: "Max", Kind: Select,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value { return b.chosen(n, dy[0]) },
	Examples: []Example{
		{Name: "two", Inputs: [][]int{{2, 3, 5}, {2, 3, 5}}, Draw: apart},
		{Name: "a bound", Inputs: [][]int{{2, 3, 5}, nil}, Consts: map[int]any{1: float32(-3.25)},
			Draw: apart},
		{Name: "three and broadcasting", Inputs: [][]int{{2, 3, 5}, {2, 1, 5}, {5}}, Draw: apart},
		{Name: "one", Inputs: [][]int{{2, 3}}},
	},
}

// chosen emits for each input the part of dy where it equals the node's output, divided by the number of such
// inputs.
func (b *Builder) chosen(n onnx.Node, dy Value) []Value {
	var masks []Value
	var sum Value
	for i, x := range n.Input {
		masks = append(masks, b.mask("Equal", b.Expand(x, b.Shape(n.Output[0])...), n.Output[0]))
		if i == 0 {
			sum = masks[0]
		} else {
			sum = b.Add(sum, masks[i])
		}
	}
	if len(masks) > 1 {
		dy = b.Div(dy, sum)
	}
	back := make([]Value, len(n.Input))
	for i, x := range n.Input {
		if b.dynamic(x) {
			back[i] = b.Unbroadcast(b.Mul(dy, masks[i]), b.Shape(x))
		}
	}
	return back
}
