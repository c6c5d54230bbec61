package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// LayerNormalization is y = γ·x̂ + β, x̂ = (x − μ)·r, with the mean μ and the reciprocal standard deviation r
// of the N elements from an axis on. With g = γ·dy, dx = r·(g − Σg/N − x̂·Σ(g·x̂)/N); both sums are products
// with the column γ/N. μ and r are the operator's optional outputs, which only the backward pass enables.
var opLayerNormalization = &Op{
	Type: "LayerNormalization", Kind: Joint, Roles: []Role{Data, Weight, Bias},
	Prepare: func(b *Builder, n onnx.Node) {
		shape := b.Shape(n.Input[0])
		stat := slices.Clone(shape)
		for i := b.axis(n, -1, len(shape)); i < len(shape); i++ {
			stat[i] = 1
		}
		t := onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: stat}
		b.enable(n, 1, t)
		b.enable(n, 2, t)
	},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		shape := b.Shape(n.Input[0])
		axis := b.axis(n, -1, len(shape))
		rows, items := size(shape[:axis]), size(shape[axis:])
		scale, mean, r := n.Input[1], n.Output[1], n.Output[2]
		column := b.Reshape(scale, items, 1)
		if size(b.Shape(scale)) != items {
			column = b.Reshape(b.Expand(scale, shape[axis:]...), items, 1)
		}
		column = b.Div(column, b.Scalar(float32(items)))
		sum := func(x Value) Value {
			return b.Reshape(b.MatMul(b.Reshape(x, rows, items), column), b.Shape(mean)...)
		}
		from := b.Sub(n.Input[0], mean) // x̂/r: r multiplies values per row rather than x̂
		along := b.Mul(from, b.Mul(b.Mul(sum(b.Mul(dy[0], from)), r), r))
		g := b.Sub(b.Mul(dy[0], scale), sum(dy[0]))
		return []Value{b.Mul(b.Sub(g, along), r)}
	},
	Examples: []Example{
		{Name: "tokens", Inputs: [][]int{{2, 5, 7}, {7}, {7}}},
		{Name: "no bias", Inputs: [][]int{{2, 5, 7}, {7}}, Attrs: []onnx.Attr{
			{Name: "axis", Value: 2}, {Name: "epsilon", Value: float32(0.25)}}},
		{Name: "two axes", Inputs: [][]int{{2, 3, 5, 3}, {5, 3}, {5, 3}},
			Attrs: []onnx.Attr{{Name: "axis", Value: 2}}},
	},
}
