package model_test

import (
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// whole computes with integers, from an input that it rounds itself or takes as bytes.
func whole(bytes bool) *onnx.Model {
	u8 := func(name string, shape []int64, v ...byte) *onnxpb.TensorProto {
		return &onnxpb.TensorProto{Name: name, Dims: shape, DataType: int32(onnxpb.TensorProto_UINT8),
			RawData: v}
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
		g.Node = append(g.Node,
			onnx.NewNode("quantise", "QuantizeLinear", []string{"pixels", "s", "zero"}, []string{x}))
	}
	g.Node = append(g.Node,
		onnx.NewNode("conv", "QLinearConv", []string{x, "s", "zero", "w", "t", "half", "t", "half"},
			[]string{"c"}),
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

// TestBytesOfConvolutions checks that a net whose first convolution reads bytes answers like one that rounds
// its input.
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

// TestNoRemark checks that methods that fit a net without a graph get no remark: the net computes with
// integers.
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

// TestRanges checks the range of an integer input and the preset derived from it.
func TestRanges(t *testing.T) {
	modeltest.Runtime(t)
	net := tiny{channels: 3, filters: 4, classes: 5, height: 6, width: 9, gain: 6}
	const float, u8, i8 = onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_UINT8, onnxpb.TensorProto_INT8
	single := op("Cast", onnx.Attr{Name: "to", Value: int(float)})
	last := op("Transpose", onnx.Attr{Name: "perm", Value: []int64{0, 3, 1, 2}})
	nchw, nhwc := []int{onnx.Free, 3, 6, 9}, []int{onnx.Free, 6, 9, 3}
	for _, tt := range []struct {
		begin  func(m *onnx.Model)
		low    float64
		high   float64
		preset string
	}{
		{begins(u8, nhwc, last, single), 0, 255, "raw"},
		{begins(u8, nchw, dequantised(1./255, 0, u8)), 0, 1, "unit"},
		{begins(u8, nhwc, last, dequantised(1./127.5, 127, u8)), -127 / 127.5, 128 / 127.5, "half"},
		{begins(i8, nchw, dequantised(1./255, 128, i8)), 0, 1, "unit"},
		{begins(u8, nchw, dequantised(0.01866, 114, u8)), -114 * 0.01866, 141 * 0.01866, "imagenet"},
	} {
		m := net.model(onnx.Free)
		tt.begin(m)
		x, err := model.Inspect(t.Context(),
			model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Layout: "auto", Order: "auto",
				Kind: "auto"})
		if err != nil || x.Problem != "" || len(x.Range) != 2 || math.Abs(x.Range[0]-tt.low) > 1e-4 ||
			math.Abs(x.Range[1]-tt.high) > 1e-4 {
			t.Errorf("%v, %q, range %v, want %v to %v", err, x.Problem, x.Range, tt.low, tt.high)
			continue
		}
		if got := model.NearestPreset(x.Range[0], x.Range[1]); got != tt.preset {
			t.Errorf("%v: preset %s, want %s", x.Range, got, tt.preset)
		}
	}
}
