package onnx

import (
	"fmt"
	"math"

	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// ElemSize returns the bytes of an element in raw data, 0 if an element isn't whole bytes or the type is
// unknown.
func ElemSize(t onnxpb.TensorProto_DataType) int {
	switch t {
	case onnxpb.TensorProto_UINT8, onnxpb.TensorProto_INT8, onnxpb.TensorProto_BOOL:
		return 1
	case onnxpb.TensorProto_UINT16, onnxpb.TensorProto_INT16, onnxpb.TensorProto_FLOAT16,
		onnxpb.TensorProto_BFLOAT16:
		return 2
	case onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_INT32, onnxpb.TensorProto_UINT32:
		return 4
	case onnxpb.TensorProto_DOUBLE, onnxpb.TensorProto_INT64, onnxpb.TensorProto_UINT64,
		onnxpb.TensorProto_COMPLEX64:
		return 8
	case onnxpb.TensorProto_COMPLEX128:
		return 16
	}
	return 0
}

// rawSize returns how many bytes of raw data t needs, -1 if the type's size is unknown.
func rawSize(t *onnxpb.TensorProto) (int64, error) {
	n := int64(ElemSize(onnxpb.TensorProto_DataType(t.DataType)))
	known := n > 0
	if !known {
		n = 1
	}
	for _, d := range t.Dims {
		if d < 0 || (d > 0 && n > math.MaxInt32*16/d) {
			return 0, fmt.Errorf("weight %q has the impossible shape %v", t.Name, t.Dims)
		}
		n *= d
	}
	if !known {
		return -1, nil
	}
	return n, nil
}

// storedSize returns how many bytes t needs in another file, where elements smaller than a byte share one;
// -1 for texts, which another file can't hold.
func storedSize(t *onnxpb.TensorProto) (int64, error) {
	n, err := rawSize(t)
	if err != nil || n >= 0 {
		return n, err
	}
	bits, ok := narrow[t.DataType]
	if !ok {
		return -1, nil
	}
	n = 1
	for _, d := range t.Dims {
		n *= d // rawSize has bounded it
	}
	return (n*bits + 7) / 8, nil
}

// narrow are the bits of an element of types that no other code reads, by their numbers in ONNX: floats of
// 8 bits, integers and floats of 4, integers of 2.
var narrow = map[int32]int64{17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2}

// listed returns how many elements t has outside its raw data.
func listed(t *onnxpb.TensorProto) int {
	switch onnxpb.TensorProto_DataType(t.DataType) {
	case onnxpb.TensorProto_FLOAT:
		return len(t.FloatData)
	case onnxpb.TensorProto_COMPLEX64:
		return len(t.FloatData) / 2
	case onnxpb.TensorProto_DOUBLE:
		return len(t.DoubleData)
	case onnxpb.TensorProto_COMPLEX128:
		return len(t.DoubleData) / 2
	case onnxpb.TensorProto_INT64:
		return len(t.Int64Data)
	case onnxpb.TensorProto_UINT32, onnxpb.TensorProto_UINT64:
		return len(t.Uint64Data)
	}
	return len(t.Int32Data)
}

func checkTensor(t *onnxpb.TensorProto) error {
	if t.DataLocation == onnxpb.TensorProto_EXTERNAL {
		return fmt.Errorf("%s stands in another file", weight(t))
	}
	want, err := rawSize(t)
	if err != nil {
		return err
	}
	if raw := t.RawData; raw != nil && want >= 0 && int64(len(raw)) != want {
		return fmt.Errorf("weight %q of shape %v needs %d bytes and has %d", t.Name, t.Dims, want, len(raw))
	} else if raw == nil && want >= 0 {
		if n := want / int64(ElemSize(onnxpb.TensorProto_DataType(t.DataType))); n != int64(listed(t)) {
			return fmt.Errorf("weight %q of shape %v needs %d numbers and has %d", t.Name, t.Dims, n,
				listed(t))
		}
	}
	return nil
}
