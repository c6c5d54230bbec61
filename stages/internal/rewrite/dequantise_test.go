package rewrite

import (
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

func TestDequantise(t *testing.T) {
	int8s := func(name string, v []byte, dims ...int64) *onnxpb.TensorProto {
		return &onnxpb.TensorProto{Name: name, DataType: int32(onnxpb.TensorProto_INT8), Dims: dims,
			RawData: v}
	}
	one := &onnxpb.TensorProto{Name: "one", DataType: int32(onnxpb.TensorProto_UINT8), Int32Data: []int32{1}}
	for _, tt := range []struct {
		name    string
		node    *onnxpb.NodeProto
		weights []*onnxpb.TensorProto
		want    []float32
		err     string
	}{
		{"one scale", node("DequantizeLinear", "w s"), []*onnxpb.TensorProto{int8s("w", []byte{1, 0xff, 4},
			3), onnx.FloatTensor("s", []float32{0.5})}, []float32{0.5, -0.5, 2}, ""},
		{"a zero", node("DequantizeLinear", "w s one"), []*onnxpb.TensorProto{
			{Name: "w", DataType: int32(onnxpb.TensorProto_UINT8), Dims: []int64{2},
				RawData: []byte{0, 255}}, onnx.FloatTensor("s", []float32{2}), one}, []float32{-2, 508}, ""},
		{"a scale a channel", node("DequantizeLinear", "w s", attr("axis", 0)), []*onnxpb.TensorProto{
			int8s("w", []byte{1, 2, 3, 4}, 2, 2), onnx.FloatTensor("s", []float32{1, 10},
				2)}, []float32{1, 2, 30, 40}, ""},
		{"a scale for each of the last axis", node("DequantizeLinear", "w s", attr("axis", -1)),
			[]*onnxpb.TensorProto{
				int8s("w", []byte{1, 2, 3, 4}, 2, 2), onnx.FloatTensor("s", []float32{1, 10},
					2)}, []float32{1, 20, 3, 40}, ""},
		{"four bits", node("DequantizeLinear", "w s"), []*onnxpb.TensorProto{
			{Name: "w", DataType: int4, Dims: []int64{3}, RawData: []byte{0xf1, 0x08}}, onnx.FloatTensor("s",
				[]float32{0.5})}, []float32{0.5, -0.5, -4}, ""},
		{"blocks of the first axis",
			node("DequantizeLinear", "w s z", attr("axis", 0), attr("block_size", 2)), []*onnxpb.TensorProto{
				{Name: "w", DataType: uint4, Dims: []int64{3, 2},
					RawData: []byte{0x21, 0x43, 0x65}},
				onnx.FloatTensor("s", []float32{1, 10, 100, 1000}, 2, 2),
				{Name: "z", DataType: uint4, Dims: []int64{2, 2},
					RawData: []byte{0x10, 0x32}}}, []float32{1, 10, 3, 30, 300, 3000}, ""},
		{"blocks of the last axis", node("DequantizeLinear", "w s", attr("block_size", 2)),
			[]*onnxpb.TensorProto{
				int8s("w", []byte{1, 2, 3, 4, 5, 6}, 2, 3),
				onnx.FloatTensor("s", []float32{1, 10, 100, 1000}, 2,
					2)}, []float32{1, 2, 30, 400, 500, 6000}, ""},
		{"too few blocks", node("DequantizeLinear", "w s", attr("block_size", 2)), []*onnxpb.TensorProto{
			int8s("w", []byte{1, 2, 3}, 1, 3), onnx.FloatTensor("s", []float32{1},
				1)}, nil, "it has 1 scales for a weight of shape [1 3]"},
		{"half a weight of four bits", node("DequantizeLinear", "w s"), []*onnxpb.TensorProto{
			{Name: "w", DataType: int4, Dims: []int64{5}, RawData: []byte{0xf1, 0x08}}, onnx.FloatTensor("s",
				[]float32{0.5})}, nil, `weight "w" has the impossible shape [5]`},
		{"too few scales", node("DequantizeLinear", "w s"), []*onnxpb.TensorProto{
			int8s("w", []byte{1, 2, 3}, 1, 3), onnx.FloatTensor("s", []float32{1, 10},
				2)}, nil, "it has 2 scales for a weight of shape [1 3]"},
		{"an activation", node("DequantizeLinear", "x s"),
			[]*onnxpb.TensorProto{onnx.FloatTensor("s", []float32{1})}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := model(13, []*onnxpb.NodeProto{tt.node}, tt.weights...)
			n, err := Dequantise(m)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == nil {
				if n != 0 || len(m.Proto.Graph.Node) != 1 {
					t.Errorf("%d are done, %d nodes left", n, len(m.Proto.Graph.Node))
				}
				return
			}
			made := m.Proto.Graph.Initializer[len(m.Proto.Graph.Initializer)-1]
			got, err := onnx.Float32s(made)
			if err != nil || n != 1 || len(m.Proto.Graph.Node) != 0 || made.Name != "y" ||
				!slices.Equal(got, tt.want) {
				t.Errorf("%q %v, want %v (%v)", made.Name, got, tt.want, err)
			}
		})
	}
}
