package model_test

import (
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// whole computes with integers from its input on, which it rounds itself or takes as bytes.
func whole(bytes bool) *onnx.Model {
	u8 := func(name string, shape []int64, v ...byte) *onnxpb.TensorProto {
		return &onnxpb.TensorProto{Name: name, Dims: shape, DataType: int32(onnxpb.TensorProto_UINT8), RawData: v}
	}
	w := make([]byte, 5*3*9)
	for i := range w {
		w[i] = byte(i * 37)
	}
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 13}},
		Graph: &onnxpb.GraphProto{Name: "whole", Initializer: []*onnxpb.TensorProto{
			u8("w", []int64{5, 3, 3, 3}, w...), u8("zero", nil, 0), u8("half", nil, 128),
			onnx.FloatTensor("s", []float32{1. / 255}), onnx.FloatTensor("t", []float32{0.02}),
		}},
	}}
	g, x := m.Proto.Graph, "pixels"
	if !bytes {
		x = "q"
		g.Node = append(g.Node, onnx.NewNode("quantise", "QuantizeLinear", []string{"pixels", "s", "zero"}, []string{x}))
	}
	g.Node = append(g.Node,
		onnx.NewNode("conv", "QLinearConv", []string{x, "s", "zero", "w", "t", "half", "t", "half"}, []string{"c"}),
		onnx.NewNode("real", "DequantizeLinear", []string{"c", "t", "half"}, []string{"r"}),
		onnx.NewNode("mean", "GlobalAveragePool", []string{"r"}, []string{"m"}),
		onnx.NewNode("flat", "Flatten", []string{"m"}, []string{"logits"}),
	)
	elem := onnxpb.TensorProto_FLOAT
	if bytes {
		elem = onnxpb.TensorProto_UINT8
	}
	m.SetInputs(onnx.Value{Name: "pixels", Elem: elem, Shape: []int{onnx.Free, 3, 6, 9}, Known: true})
	m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT})
	return m
}

// TestBytesOfConvolutions holds that a net whose first convolution reads bytes answers as
// the one that rounds its input to these.
func TestBytesOfConvolutions(t *testing.T) {
	modeltest.Runtime(t)
	image := make([]byte, 3*6*9)
	for i := range image {
		image[i] = byte(i * i * 7)
	}
	of := func(m *onnx.Model) string {
		r := stagetest.Run(t, model.Predict, nil, map[string][]stages.Data{
			"model":  {modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit"})},
			"images": {stagetest.Items(nil, stages.NewTensor(image, 3, 6, 9).Encode())},
		})
		return string(r.Payloads["targets"][0]) + string(r.Payloads["probability"][0])
	}
	if of(whole(true)) != of(whole(false)) {
		t.Error("the answers differ")
	}
}

// TestNoRemark holds that there is nothing to say of a method on a net that has no graph
// and that it fits: the net computes with integers.
func TestNoRemark(t *testing.T) {
	modeltest.Runtime(t)
	p := *model.ONNX.NewParams().(*model.ONNXParams)
	p.Path = altered(t, "smallcnn", rounded(true))
	trial, err := model.NewTrial(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer trial.Close()
	if why, err := trial.Remark(t.Context(), remarking{}); why != "" || err != nil {
		t.Errorf("%q, %v", why, err)
	}
}

// remarking always has a remark.
type remarking struct{}

func (remarking) Remark(*onnx.Graph) string { return "a remark" }
