package program_test

import (
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestSeparatePads checks the answer and the derivative of a net that pads negative values with zeros before
// a MaxPool: only the last of four windows has none of the zeros, so that the mean of the maxima is a quarter
// of that window's.
func TestSeparatePads(t *testing.T) {
	const side = 4
	single := func(name string, shape ...int) *onnxpb.ValueInfoProto {
		s := &onnxpb.TensorShapeProto{}
		for _, d := range shape {
			s.Dim = append(s.Dim,
				&onnxpb.TensorShapeProto_Dimension{
					Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}})
		}
		if s.Dim != nil {
			s.Dim[0].Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "N"}
		}
		return &onnxpb.ValueInfoProto{Name: name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{ElemType: int32(onnxpb.TensorProto_FLOAT), Shape: s}}}}
	}
	m := onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion:   8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
		Graph: &onnxpb.GraphProto{
			Name: "pads",
			Input: []*onnxpb.ValueInfoProto{single("image", 1, 1, side,
				side)}, Output: []*onnxpb.ValueInfoProto{single("logits", 1, 1)},
			Initializer: []*onnxpb.TensorProto{onnx.IntTensor("sizes", []int64{0, 0, 1, 1, 0, 0, 1, 1}, 8),
				onnx.FloatTensor("zero", []float32{0})},
			Node: []*onnxpb.NodeProto{
				onnx.NewNode("", "Neg", []string{"image"}, []string{"negative"}),
				onnx.NewNode("", "Pad", []string{"negative", "sizes", "zero"}, []string{"padded"}),
				onnx.NewNode("", "MaxPool", []string{"padded"}, []string{"largest"},
					onnx.Attr{Name: "kernel_shape", Value: []int64{3, 3}}, onnx.Attr{Name: "strides",
						Value: []int64{2, 2}}),
				onnx.NewNode("", "GlobalAveragePool", []string{"largest"}, []string{"mean"}),
				onnx.NewNode("", "Flatten", []string{"mean"}, []string{"logits"}),
			},
		},
	}}
	n, slot := net(t, model.ONNXParams{Path: modeltest.File(t, &m), Preset: "unit"}), stagetest.NewSlot()
	image := make([]float32, side*side)
	for i := range image {
		image[i] = 1 + float32(i*7%16)/16
	}
	least := side + 1 // of the last window, which begins there
	for y := 1; y < side; y++ {
		for x := 1; x < side; x++ {
			if k := y*side + x; image[k] < image[least] {
				least = k
			}
		}
	}
	want := []float32{image[least] / 4, -image[least] / 4} // both sides of one output
	f, err := n.Forward(t.Context(), slot, 1)
	if err != nil {
		t.Fatal(err)
	}
	copy(f.Image(0), image)
	if err := f.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.Row(0), want) {
		t.Errorf("the answer is %v, not %v", f.Row(0), want)
	}
	g, err := n.Gradient(t.Context(), slot, lower.Question{Rules: relevance.Derivative()}, 1)
	if err != nil {
		t.Fatal(err)
	}
	copy(g.Image(0), image)
	g.Explain(0, program.Target{Class: 1, Minus: -1})
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	derivative := make([]float32, len(image))
	derivative[least] = -0.25
	if got := g.Result(0, 0).Gradient; !slices.Equal(got, derivative) || !slices.Equal(g.Row(0), want) {
		t.Errorf("the derivative is %v, not %v, of %v", got, derivative, g.Row(0))
	}
}
