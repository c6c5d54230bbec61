package rewrite

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

const (
	float32Type  = int32(onnxpb.TensorProto_FLOAT)
	float16Type  = int32(onnxpb.TensorProto_FLOAT16)
	bfloat16Type = int32(onnxpb.TensorProto_BFLOAT16)
	float64Type  = int32(onnxpb.TensorProto_DOUBLE)
)

func otherFloat(t int32) bool { return t == float16Type || t == bfloat16Type || t == float64Type }

// SinglePrecision converts every number of a model that isn't an integer to float32: weights, inputs,
// outputs, and the targets of casts. Half precision loses nothing by it. It returns whether it changed
// anything.
func SinglePrecision(m *onnx.Model) (bool, error) {
	s := &single{}
	if err := s.graph(m.Proto.Graph); err != nil {
		return false, err
	}
	return s.changed, nil
}

type single struct{ changed bool }

func (s *single) graph(g *onnxpb.GraphProto) error {
	for _, v := range slices.Concat(g.Input, g.Output, g.ValueInfo) {
		if t := v.GetType().GetTensorType(); t != nil && otherFloat(t.ElemType) {
			t.ElemType = float32Type
			s.changed = true
		}
	}
	for _, t := range g.Initializer {
		if err := s.tensor(t); err != nil {
			return err
		}
	}
	for _, n := range g.Node {
		for _, a := range n.Attribute {
			if a.T != nil {
				if err := s.tensor(a.T); err != nil {
					return err
				}
			}
			if typed(n.OpType, a.Name) && otherFloat(int32(a.GetI())) {
				i := int64(float32Type)
				a.I = &i
				s.changed = true
			}
		}
		for _, inner := range onnx.Bodies(n) {
			if err := s.graph(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// typed reports whether an attribute of an operator is the type of its output.
func typed(op, attr string) bool {
	switch op {
	case "Cast":
		return attr == "to"
	case "EyeLike", "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli":
		return attr == "dtype"
	}
	return false
}

// tensor makes t a float32 tensor if it has floats of another size.
func (s *single) tensor(t *onnxpb.TensorProto) error {
	var raw []byte
	put := func(v float32) { raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v)) }
	switch t.DataType {
	case float64Type:
		raw = make([]byte, 0, 4*len(t.DoubleData)+len(t.RawData)/2)
		for _, v := range t.DoubleData {
			put(float32(v))
		}
		for i := 0; i+8 <= len(t.RawData); i += 8 {
			put(float32(math.Float64frombits(binary.LittleEndian.Uint64(t.RawData[i:]))))
		}
	case float16Type, bfloat16Type:
		decode := onnx.FromFloat16
		if t.DataType == bfloat16Type {
			decode = func(v uint16) float32 { return math.Float32frombits(uint32(v) << 16) }
		}
		raw = make([]byte, 0, 4*len(t.Int32Data)+2*len(t.RawData))
		for _, v := range t.Int32Data { // ONNX keeps 16 bits in an int32 each
			put(decode(uint16(v)))
		}
		for i := 0; i+2 <= len(t.RawData); i += 2 {
			put(decode(binary.LittleEndian.Uint16(t.RawData[i:])))
		}
	default:
		return nil
	}
	shape, n := onnx.ShapeOf(t), 1
	if !onnx.Possible(shape) {
		return fmt.Errorf("weight %q has the impossible shape %v", t.Name, shape)
	}
	for _, d := range shape {
		n *= d
	}
	if len(raw) != 4*n {
		return fmt.Errorf("weight %q of shape %v has %d numbers", t.Name, t.Dims, len(raw)/4)
	}
	t.DataType, t.RawData = float32Type, raw
	t.DoubleData, t.Int32Data = nil, nil
	s.changed = true
	return nil
}
