package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// elemSize returns the bytes of an element in raw data, 0 where they aren't whole
// or not known.
func elemSize(t onnxpb.TensorProto_DataType) int {
	switch t {
	case onnxpb.TensorProto_UINT8, onnxpb.TensorProto_INT8, onnxpb.TensorProto_BOOL:
		return 1
	case onnxpb.TensorProto_UINT16, onnxpb.TensorProto_INT16, onnxpb.TensorProto_FLOAT16, onnxpb.TensorProto_BFLOAT16:
		return 2
	case onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_INT32, onnxpb.TensorProto_UINT32:
		return 4
	case onnxpb.TensorProto_DOUBLE, onnxpb.TensorProto_INT64, onnxpb.TensorProto_UINT64, onnxpb.TensorProto_COMPLEX64:
		return 8
	case onnxpb.TensorProto_COMPLEX128:
		return 16
	}
	return 0
}

// rawSize returns how many bytes of raw data t needs, -1 where the type's size
// isn't known.
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

// checkGraph checks the weights of a graph, those inside nodes, and those of the
// graphs inside nodes.
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
			return fmt.Errorf("weight %q of shape %v needs %d numbers and has %d", t.Name, t.Dims, n, listed(t))
		}
	}
	return nil
}

// FlushSubnormals replaces weights too small for a normal float32 by zeros of
// their sign and returns how many. They don't change what a float32 net computes
// beyond its rounding, and make some processors ten times slower.
func (m *Model) FlushSubnormals() int {
	n := 0
	for _, t := range m.Proto.Graph.Initializer {
		n += flush(t)
	}
	for _, node := range m.Proto.Graph.Node {
		for _, a := range node.Attribute {
			if a.T != nil {
				n += flush(a.T)
			}
		}
	}
	return n
}

func flush(t *onnxpb.TensorProto) int {
	if t.DataType != int32(onnxpb.TensorProto_FLOAT) {
		return 0
	}
	const exponent, sign = 0x7f800000, 0x80000000
	n := 0
	for i, v := range t.FloatData {
		if bits := math.Float32bits(v); bits&exponent == 0 && bits&^sign != 0 {
			t.FloatData[i] = math.Float32frombits(bits & sign)
			n++
		}
	}
	for i := 0; i+4 <= len(t.RawData); i += 4 {
		if bits := binary.LittleEndian.Uint32(t.RawData[i:]); bits&exponent == 0 && bits&^sign != 0 {
			binary.LittleEndian.PutUint32(t.RawData[i:], bits&sign)
			n++
		}
	}
	return n
}
