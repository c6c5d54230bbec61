package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// elemSize returns the bytes of an element in raw data, 0 where they aren't whole or not known.
func elemSize(t onnxpb.TensorProto_DataType) int {
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

// rawSize returns how many bytes of raw data t needs, -1 where the type's size isn't known.
func rawSize(t *onnxpb.TensorProto) (int64, error) {
	n := int64(elemSize(onnxpb.TensorProto_DataType(t.DataType)))
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

// checkGraph checks the weights of a graph, those inside nodes, and those of the graphs inside nodes.
func checkGraph(g *onnxpb.GraphProto) error {
	for _, t := range g.Initializer {
		if err := checkTensor(t); err != nil {
			return err
		}
	}
	for _, n := range g.Node {
		for _, a := range n.Attribute {
			for _, t := range append(slices.Clone(a.Tensors), a.T) {
				if t == nil {
					continue
				}
				if err := checkTensor(t); err != nil {
					return fmt.Errorf("node %s: %w", Node{n}.Label(), err)
				}
			}
		}
		for _, inner := range Bodies(n) {
			if err := checkGraph(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

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
		return fmt.Errorf("weight %q stands in another file", t.Name)
	}
	want, err := rawSize(t)
	if err != nil {
		return err
	}
	if raw := t.RawData; raw != nil && want >= 0 && int64(len(raw)) != want {
		return fmt.Errorf("weight %q of shape %v needs %d bytes and has %d", t.Name, t.Dims, want, len(raw))
	} else if raw == nil && want >= 0 {
		if n := want / int64(elemSize(onnxpb.TensorProto_DataType(t.DataType))); n != int64(listed(t)) {
			return fmt.Errorf("weight %q of shape %v needs %d numbers and has %d", t.Name, t.Dims, n,
				listed(t))
		}
	}
	return nil
}
