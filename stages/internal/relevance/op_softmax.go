package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Softmax is yᵢ = exp xᵢ / Σ exp xⱼ along an axis: dx = y·(dy − Σ dy·y). In attention, Z = y·V with values V
// and dy = dZ·Vᵀ; then the sum equals Σ dZ·Z over a head's channels, which are fewer than its tokens.
var opSoftmax = &Op{
	Type: "Softmax", Kind: Joint,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		y := n.Output[0]
		axis := b.axis(n, -1, len(b.Shape(y)))
		last := len(b.Shape(y)) - 1
		if dz, z, ok := b.weighted(y, dy[0]); ok && axis == last {
			return []Value{b.Mul(y, b.Sub(dy[0], b.Sum(b.Mul(dz, z), []int{last}, true)))}
		}
		p := b.Mul(dy[0], y)
		return []Value{b.Sub(p, b.Mul(y, b.Sum(p, []int{axis}, true)))}
	},
	Examples: []Example{
		{Name: "classes", Inputs: [][]int{{2, 7}}},
		{Name: "attention", Inputs: [][]int{{2, 3, 5, 5}}, Attrs: []onnx.Attr{{Name: "axis", Value: -1}}},
		{Name: "channels", Inputs: [][]int{{2, 5, 3}}, Attrs: []onnx.Attr{{Name: "axis", Value: 1}}},
	},
}

// weighted returns dz and Z for a product Z of y with a V that has fewer columns, if dy was computed as
// dZ·Vᵀ.
func (b *Builder) weighted(y, dy Value) (dz, z Value, ok bool) {
	product := b.emittedAs(dy, "MatMul")
	if product == nil {
		return "", "", false
	}
	turned := b.emittedAs(product.Input[1], "Transpose")
	if turned == nil || !swapsLast(onnx.Node{NodeProto: turned}.Ints("perm")) {
		return "", "", false
	}
	dz, v := product.Input[0], turned.Input[0]
	for _, k := range slices.Backward(b.readers(y)) { // the first reader is the last one
		n := b.model[k]
		if n.OpType == "MatMul" && n.Input[0] == y && n.Input[1] == v {
			z = n.Output[0]
			s := b.Shape(z)
			k := len(s) - 1
			return dz, z, k > 0 && slices.Equal(s, b.Shape(dz)) && slices.Equal(s[:k], b.Shape(y)[:k]) &&
				s[k] < b.Shape(y)[k]
		}
	}
	return "", "", false
}

// emittedAs returns the emitted node that produces v, if it has that operator.
func (b *Builder) emittedAs(v Value, op string) *onnxNode {
	if n := b.producedBy[v]; n != nil && n.OpType == op {
		return n
	}
	return nil
}
