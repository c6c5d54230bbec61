package onnx

import (
	"encoding/binary"
	"math"

	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// FlushSubnormals replaces weights too small for a normal float32 by zeros of their sign and returns how
// many. They don't change what a float32 net computes beyond its rounding, and make some processors ten times
// slower.
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
