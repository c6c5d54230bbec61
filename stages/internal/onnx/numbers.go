package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Int64s returns the elements of a tensor of int64 or int32.
func Int64s(t *onnxpb.TensorProto) ([]int64, error) {
	switch onnxpb.TensorProto_DataType(t.DataType) {
	case onnxpb.TensorProto_INT64:
		if t.RawData == nil {
			return t.Int64Data, nil
		}
		out := make([]int64, len(t.RawData)/8)
		for i := range out {
			out[i] = int64(binary.LittleEndian.Uint64(t.RawData[8*i:]))
		}
		return out, nil
	case onnxpb.TensorProto_INT32:
		var out []int64
		for _, v := range t.Int32Data {
			out = append(out, int64(v))
		}
		for i := 0; i+4 <= len(t.RawData); i += 4 {
			out = append(out, int64(int32(binary.LittleEndian.Uint32(t.RawData[i:]))))
		}
		return out, nil
	}
	return nil, fmt.Errorf("weight %q holds %s, not integers", t.Name,
		onnxpb.TensorProto_DataType(t.DataType))
}

// Float32s returns the elements of a tensor of float32.
func Float32s(t *onnxpb.TensorProto) ([]float32, error) {
	if t.DataType != int32(onnxpb.TensorProto_FLOAT) {
		return nil, fmt.Errorf("weight %q holds %s, not float32", t.Name,
			onnxpb.TensorProto_DataType(t.DataType))
	}
	if t.RawData == nil {
		return t.FloatData, nil
	}
	out := make([]float32, len(t.RawData)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.RawData[4*i:]))
	}
	return out, nil
}

// FloatTensor returns a constant of float32.
func FloatTensor(name string, v []float32, shape ...int) *onnxpb.TensorProto {
	t := &onnxpb.TensorProto{Name: name, Dims: dims(shape), DataType: int32(onnxpb.TensorProto_FLOAT),
		RawData: make([]byte, 0, 4*len(v))}
	for _, x := range v {
		t.RawData = binary.LittleEndian.AppendUint32(t.RawData, math.Float32bits(x))
	}
	return t
}

// ConstantOf returns the tensor of a Constant, however it is written; nil for other nodes, and for sparse
// tensors and text.
func ConstantOf(n Node) *onnxpb.TensorProto {
	if n.GetOpType() != "Constant" || len(n.Attribute) != 1 {
		return nil
	}
	switch a := n.Attribute[0]; a.Name {
	case "value":
		return a.T
	case "value_float":
		return FloatTensor("", []float32{a.GetF()})
	case "value_floats":
		return FloatTensor("", a.Floats, len(a.Floats))
	case "value_int":
		return IntTensor("", []int64{a.GetI()})
	case "value_ints":
		return IntTensor("", a.Ints, len(a.Ints))
	}
	return nil
}

// IntTensor returns a constant of int64.
func IntTensor[T int | int64](name string, v []T, shape ...int) *onnxpb.TensorProto {
	t := &onnxpb.TensorProto{Name: name, Dims: dims(shape), DataType: int32(onnxpb.TensorProto_INT64),
		RawData: make([]byte, 0, 8*len(v))}
	for _, x := range v {
		t.RawData = binary.LittleEndian.AppendUint64(t.RawData, uint64(x))
	}
	return t
}

func dims(shape []int) []int64 {
	out := make([]int64, len(shape))
	for i, d := range shape {
		out[i] = int64(d)
	}
	return out
}
