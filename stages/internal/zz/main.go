package main

import (
	"os"
	"strconv"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

func main() {
	m, _ := strconv.Atoi(os.Args[2])
	g := &onnxpb.GraphProto{Name: "greedy"}
	w := make([]float32, 30)
	for i := range w {
		w[i] = float32((i*7)%11) / 11
	}
	g.Initializer = []*onnxpb.TensorProto{
		onnx.IntTensor("rows", []int64{-1, 1, 3}, 3), onnx.IntTensor("wide", []int64{1, int64(m), 3}, 3),
		onnx.FloatTensor("w", w, 3, 10),
	}
	g.Node = []*onnxpb.NodeProto{
		onnx.NewNode("a", "ReduceMean", []string{"x"}, []string{"a"}, onnx.Attr{Name: "axes", Value: []int64{2, 3}}, onnx.Attr{Name: "keepdims", Value: 0}),
		onnx.NewNode("b", "Reshape", []string{"a", "rows"}, []string{"b"}),
		onnx.NewNode("c", "Expand", []string{"b", "wide"}, []string{"c"}),
		onnx.NewNode("d", "ReduceMax", []string{"c"}, []string{"d"}, onnx.Attr{Name: "axes", Value: []int64{1}}, onnx.Attr{Name: "keepdims", Value: 0}),
		onnx.NewNode("y", "MatMul", []string{"d", "w"}, []string{"y"}),
	}
	dim := func(n int64) *onnxpb.TensorShapeProto_Dimension {
		return &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: n}}
	}
	sym := &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "N"}}
	val := func(name string, d ...*onnxpb.TensorShapeProto_Dimension) *onnxpb.ValueInfoProto {
		return &onnxpb.ValueInfoProto{Name: name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{ElemType: 1, Shape: &onnxpb.TensorShapeProto{Dim: d}}}}}
	}
	g.Input = []*onnxpb.ValueInfoProto{val("x", sym, dim(3), dim(32), dim(32))}
	g.Output = []*onnxpb.ValueInfoProto{val("y", sym, dim(10))}
	mm := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 13}}, Graph: g}}
	b, err := mm.Encode()
	if err != nil {
		panic(err)
	}
	os.WriteFile(os.Args[1], b, 0o644)
}
