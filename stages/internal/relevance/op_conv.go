package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Conv is the correlation of an image with weights [M, C/group, kernel…]. Its adjoint is
// [Builder.convAdjoint]. The cotangent of the weights isn't implemented: weights that depend on the image are
// an error.
var opConv = &Op{
	Type: "Conv", Kind: Affine, Roles: []Role{Data, Weight, Bias},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		weights := n.Input[1]
		w := b.window(n, b.Shape(weights)[2:])
		return []Value{b.convAdjoint(dy[0], weights, n.Int("group", 1), w), "", ""}
	},
	Examples: []Example{
		{Name: "plain", Inputs: [][]int{{2, 3, 6, 5}, {4, 3, 3, 3}, {4}}},
		{Name: "same size", Inputs: [][]int{{2, 3, 6, 5}, {4, 3, 3, 3}}, Attrs: []onnx.Attr{
			{Name: "pads", Value: []int64{1, 1, 1, 1}}}},
		{Name: "uneven pads", Inputs: [][]int{{2, 3, 6, 5}, {4, 3, 3, 2}}, Attrs: []onnx.Attr{
			{Name: "pads", Value: []int64{0, 1, 2, 0}}}},
		{Name: "more padding than kernel", Inputs: [][]int{{2, 3, 6, 5}, {4, 3, 1, 2}}, Attrs: []onnx.Attr{
			{Name: "pads", Value: []int64{1, 1, 2, 3}}}},
		{Name: "one element a kernel", Inputs: [][]int{{2, 5, 3, 3}, {7, 5, 1, 1}, {7}}},
		{Name: "stride 2", Inputs: [][]int{{2, 3, 9, 8}, {4, 3, 3, 3}}, Attrs: []onnx.Attr{
			{Name: "strides", Value: []int64{2, 2}}, {Name: "pads", Value: []int64{1, 1, 1, 1}}}},
		{Name: "the first of a ResNet", Inputs: [][]int{{2, 3, 15, 14}, {4, 3, 7, 7}}, Attrs: []onnx.Attr{
			{Name: "strides", Value: []int64{2, 2}}, {Name: "pads", Value: []int64{3, 3, 3, 3}}}},
		{Name: "a shortcut", Inputs: [][]int{{2, 3, 8, 7}, {4, 3, 1, 1}}, Attrs: []onnx.Attr{
			{Name: "strides", Value: []int64{2, 2}}}},
		{Name: "patches", Inputs: [][]int{{2, 3, 8, 8}, {5, 3, 4, 4}, {5}}, Attrs: []onnx.Attr{
			{Name: "strides", Value: []int64{4, 4}}}},
		{Name: "patches and a rest", Inputs: [][]int{{2, 3, 11, 10}, {5, 3, 3, 4}}, Attrs: []onnx.Attr{
			{Name: "strides", Value: []int64{3, 4}}}},
		{Name: "many filters", Inputs: [][]int{{2, 3, 9, 8}, {130, 3, 3, 3}}, Attrs: []onnx.Attr{
			{Name: "strides", Value: []int64{2, 2}}, {Name: "pads", Value: []int64{1, 0, 0, 1}}}},
		{Name: "strides that differ", Inputs: [][]int{{2, 3, 8, 9}, {4, 3, 3, 2}}, Attrs: []onnx.Attr{
			{Name: "strides", Value: []int64{1, 3}}, {Name: "pads", Value: []int64{1, 0, 1, 1}}}},
		{Name: "groups", Inputs: [][]int{{2, 6, 7, 6}, {4, 3, 3, 3}, {4}}, Attrs: []onnx.Attr{
			{Name: "group", Value: 2}, {Name: "strides", Value: []int64{2, 2}},
			{Name: "pads", Value: []int64{1, 1, 1, 1}}}},
		{Name: "a group a channel", Inputs: [][]int{{2, 5, 7, 7}, {5, 1, 3, 3}}, Attrs: []onnx.Attr{
			{Name: "group", Value: 5}, {Name: "strides", Value: []int64{2, 2}},
			{Name: "pads", Value: []int64{0, 0, 1, 1}}}},
		{Name: "two filters a channel", Inputs: [][]int{{2, 3, 7, 7}, {6, 1, 3, 3}}, Attrs: []onnx.Attr{
			{Name: "group", Value: 3}, {Name: "pads", Value: []int64{1, 1, 1, 1}}}},
		{Name: "dilated", Inputs: [][]int{{2, 3, 9, 9}, {4, 3, 3, 3}}, Attrs: []onnx.Attr{
			{Name: "dilations", Value: []int64{2, 3}}, {Name: "pads", Value: []int64{2, 3, 2, 3}}}},
		{Name: "dilated with a stride", Inputs: [][]int{{2, 3, 9, 10}, {4, 3, 3, 3}}, Attrs: []onnx.Attr{
			{Name: "dilations", Value: []int64{2, 2}}, {Name: "strides", Value: []int64{2, 3}},
			{Name: "pads", Value: []int64{2, 2, 1, 2}}}},
		{Name: "SAME_UPPER", Inputs: [][]int{{2, 3, 8, 9}, {4, 3, 3, 3}}, Attrs: []onnx.Attr{
			{Name: "auto_pad", Value: "SAME_UPPER"}, {Name: "strides", Value: []int64{2, 2}}}},
		{Name: "SAME_LOWER", Inputs: [][]int{{2, 3, 8, 9}, {4, 3, 2, 3}}, Attrs: []onnx.Attr{
			{Name: "auto_pad", Value: "SAME_LOWER"}}},
		{Name: "a signal", Inputs: [][]int{{2, 3, 9}, {4, 3, 3}, {4}}, Attrs: []onnx.Attr{
			{Name: "strides", Value: []int64{2}}, {Name: "pads", Value: []int64{1, 0}}}},
	},
}
