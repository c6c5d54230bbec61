package relevance

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Where selects each element from one of two inputs by a condition; the selected one gets the cotangent.
var opWhere = &Op{
	Type: "Where", Kind: Select, Roles: []Role{Config, Data, Data},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		first := b.Cast(n.Input[0], onnxpb.TensorProto_FLOAT)
		back := []Value{"", "", ""}
		if x := n.Input[1]; b.dynamic(x) {
			back[1] = b.Unbroadcast(b.Mul(dy[0], first), b.Shape(x))
		}
		if x := n.Input[2]; b.dynamic(x) {
			back[2] = b.Unbroadcast(b.Mul(dy[0], b.Sub(b.Scalar(1), first)), b.Shape(x))
		}
		return back
	},
	Examples: []Example{
		{Name: "both", Inputs: [][]int{nil, {2, 3, 4}, {2, 1, 4}},
			Consts: map[int]any{0: []bool{true, false, false, true}}},
		{Name: "a mask", Inputs: [][]int{nil, nil, {2, 3, 4}},
			Consts: map[int]any{0: []bool{true, false, false, true}, 1: float32(-100)}},
	},
}
