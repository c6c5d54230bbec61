package relevance

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// MaxPool selects the largest element of each window, the first one of ties. Its second output, which only
// the backward pass enables because it costs more than the pool itself, is that element's index in the
// flattened input; the cotangents are scattered to these indices, and added where windows overlap. Without
// indices see [Builder.toFirstLargest].
var opMaxPool = &Op{
	Type: "MaxPool", Kind: Select,
	Prepare: func(b *Builder, n onnx.Node) {
		if b.without.Indices {
			return
		}
		b.enable(n, 1, onnx.Type{Elem: onnxpb.TensorProto_INT64, Shape: b.Shape(n.Output[0])})
	},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		if dy[0] == "" {
			return nil
		}
		if n.Int("storage_order", 0) != 0 {
			b.Fail(n, "storage_order 1 isn't supported")
			return nil
		}
		if b.without.Indices {
			return []Value{b.toFirstLargest(n.Input[0], n.Output[0], dy[0], b.window(n, nil))}
		}
		shape := b.Shape(n.Input[0])
		count := size(b.Shape(dy[0]))
		reduction := "add"
		if b.window(n, nil).disjoint() {
			reduction = "none"
		}
		flat := b.EmitTyped("Reshape", onnxpb.TensorProto_INT64, []int{count},
			[]Value{n.Output[1], b.Ints(count)})
		dx := b.Emit("ScatterElements", []int{size(shape)},
			[]Value{b.zerosAfter(dy[0], size(shape)), flat, b.Reshape(dy[0], count)},
			onnx.Attr{Name: "axis", Value: 0}, onnx.Attr{Name: "reduction", Value: reduction})
		return []Value{b.Reshape(dx, shape...)}
	},
	Examples: []Example{
		{Name: "disjoint", Inputs: [][]int{{2, 3, 6, 6}}, Draw: apart, Attrs: []onnx.Attr{
			{Name: "kernel_shape", Value: []int64{2, 2}}, {Name: "strides", Value: []int64{2, 2}}}},
		{Name: "overlapping", Inputs: [][]int{{2, 3, 7, 7}}, Draw: apart, Attrs: []onnx.Attr{
			{Name: "kernel_shape", Value: []int64{3, 3}}, {Name: "strides", Value: []int64{2, 2}},
			{Name: "pads", Value: []int64{1, 1, 1, 1}}}},
		{Name: "dense", Inputs: [][]int{{2, 3, 5, 6}}, Draw: apart, Attrs: []onnx.Attr{
			{Name: "kernel_shape", Value: []int64{3, 2}}}},
		{Name: "ceiling", Inputs: [][]int{{2, 3, 6, 7}}, Draw: apart, Attrs: []onnx.Attr{
			{Name: "kernel_shape", Value: []int64{3, 3}}, {Name: "strides", Value: []int64{2, 2}},
			{Name: "ceil_mode", Value: 1}}},
		{Name: "dilated", Inputs: [][]int{{2, 3, 8, 7}}, Draw: apart, Attrs: []onnx.Attr{
			{Name: "kernel_shape", Value: []int64{2, 3}}, {Name: "dilations", Value: []int64{3, 2}}}},
		{Name: "a signal", Inputs: [][]int{{2, 3, 8}}, Draw: apart, Attrs: []onnx.Attr{
			{Name: "kernel_shape", Value: []int64{3}}, {Name: "strides", Value: []int64{2}},
			{Name: "auto_pad", Value: "SAME_UPPER"}}},
	},
}

// zerosAfter emits a row of zeros that is computed from x. ONNX Runtime would fold [Builder.Zeros] of that
// size into a constant kept as long as the session.
func (b *Builder) zerosAfter(x Value, n int) Value {
	one := b.Slice(b.Reshape(x, size(b.Shape(x))), []int{0}, []int{1})
	return b.Expand(b.Less(one, one), n) // never true, not even for NaN
}

// enable has a node compute its output i too.
func (b *Builder) enable(n onnx.Node, i int, t onnx.Type) {
	for len(n.Output) <= i {
		n.Output = append(n.Output, "")
	}
	if n.Output[i] == "" {
		n.Output[i] = b.g.Fresh("grad/" + n.Output[0] + "/output")
	}
	b.g.Types[n.Output[i]] = t
}
