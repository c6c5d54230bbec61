package relevance

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Pow is y = xᵖ with a constant p: dx = dy·p·xᵖ⁻¹. Squares, cubes and roots avoid the power, which is slow
// and undefined for negative x.
var opPow = &Op{
	Type: "Pow", Kind: Activation, Roles: []Role{Data, Weight},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x, p := n.Input[0], n.Input[1]
		var factor Value
		switch v, ok := b.number(p); {
		case ok && v == 1:
			return []Value{b.Unbroadcast(dy[0], b.Shape(x))}
		case ok && v == 2:
			factor = b.Mul(x, b.Scalar(2))
		case ok && v == 3:
			factor = b.Mul(b.Mul(x, x), b.Scalar(3))
		case ok && v == 0.5:
			factor = b.Div(b.Scalar(0.5), n.Output[0])
		case ok:
			factor = b.Mul(b.binary("Pow", x, b.Scalar(v-1)), b.Scalar(v))
		default:
			if b.g.Types[p].Elem != onnxpb.TensorProto_FLOAT {
				p = b.Cast(p, onnxpb.TensorProto_FLOAT)
			}
			factor = b.Mul(b.binary("Pow", x, b.Sub(p, b.Scalar(1))), p)
		}
		return []Value{b.Unbroadcast(b.Mul(dy[0], factor), b.Shape(x))}
	},
	Examples: []Example{
		{Name: "square", Inputs: [][]int{{2, 3, 5}, nil}, Consts: map[int]any{1: float32(2)}},
		{Name: "a whole number", Inputs: [][]int{{2, 3, 5}, nil}, Consts: map[int]any{1: int64(2)}},
		{Name: "itself", Inputs: [][]int{{2, 3, 5}, nil}, Consts: map[int]any{1: float32(1)}},
		{Name: "cube", Inputs: [][]int{{2, 3, 5}, nil}, Consts: map[int]any{1: []float32{3}}},
		{Name: "root", Inputs: [][]int{{2, 3, 5}, nil}, Consts: map[int]any{1: float32(0.5)},
			Draw: aboveZero},
		{Name: "inverse root", Inputs: [][]int{{2, 3, 5}, nil}, Consts: map[int]any{1: float32(-0.5)},
			Draw: aboveZero},
		{Name: "fourth", Inputs: [][]int{{2, 3, 5}, nil}, Consts: map[int]any{1: float32(4)}},
		{Name: "several", Inputs: [][]int{{2, 1, 3}, nil}, Consts: map[int]any{1: []float32{1, 2, 3}}},
		{Name: "several whole numbers", Inputs: [][]int{{2, 1, 1}, nil},
			Consts: map[int]any{1: []int64{1, 2, 3}}},
	},
}

// number returns the value of a constant with one element.
func (b *Builder) number(name Value) (float32, bool) {
	if v, ok := b.g.Float32s(name); ok && len(v) == 1 {
		return v[0], true
	}
	if v, ok := b.g.Int64s(name); ok && len(v) == 1 {
		return float32(v[0]), true
	}
	return 0, false
}
