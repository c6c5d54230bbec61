package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// ConvTranspose is the adjoint of a Conv with respect to its image, plus a bias, with weights [M, C/group,
// kernel…]. Its adjoint is that Conv.
var opConvTranspose = &Op{
	Type: "ConvTranspose", Kind: Affine, Roles: []Role{Data, Weight, Bias},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		kernel := b.Shape(n.Input[1])[2:]
		w := b.window(n, kernel)
		before, after := w.before, slices.Clone(w.after)
		for i := range kernel {
			used := w.stride[i]*(w.in[i]-1) + w.extent(i) // elements of the padded output that windows write
			if n.Has("output_shape") || n.Text("auto_pad", "NOTSET") != "NOTSET" {
				b.Fail(n, "it defines its output shape instead of pads")
				return nil
			}
			after[i] = used - w.out[i] - before[i]
			if after[i] < 0 {
				g := b.padAxis(dy[0], 2+i, 0, after[i]) // no window writes these
				dy = []Value{g}
				after[i] = 0
			}
		}
		dx := b.Emit("Conv", b.Shape(n.Input[0]), []Value{dy[0], n.Input[1]},
			onnx.Attr{Name: "kernel_shape", Value: longs(kernel)},
			onnx.Attr{Name: "strides", Value: longs(w.stride)},
			onnx.Attr{Name: "pads", Value: longs(slices.Concat(before, after))},
			onnx.Attr{Name: "dilations", Value: longs(w.dilation)},
			onnx.Attr{Name: "group", Value: n.Int("group", 1)})
		return []Value{dx, "", ""}
	},
	Examples: []Example{
		{Name: "twice as large", Inputs: [][]int{{2, 3, 4, 5}, {3, 4, 2, 2}, {4}},
			Attrs: []onnx.Attr{{Name: "strides", Value: []int64{2, 2}}}},
		{Name: "pads", Inputs: [][]int{{2, 4, 4, 5}, {4, 3, 3, 3}}, Attrs: []onnx.Attr{
			{Name: "strides", Value: []int64{2, 1}}, {Name: "pads", Value: []int64{1, 0, 1, 2}},
			{Name: "group", Value: 2}}},
		{Name: "output padding", Inputs: [][]int{{2, 3, 4, 5}, {3, 4, 3, 3}}, Attrs: []onnx.Attr{
			{Name: "strides", Value: []int64{2, 2}}, {Name: "output_padding", Value: []int64{1, 1}}}},
	},
}
