package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Dequantise turns weights that are kept as small integers, and made floats by a
// DequantizeLinear when the model runs, into the floats that they stand for:
// (w − zero)·scale. It returns how many there were. Others, such as quantised
// activations, stay as they are. Call it after [Single].
func Dequantise(m *onnx.Model) (int, error) {
	g := m.Proto.Graph
	weights := map[string]*onnxpb.TensorProto{}
	for _, t := range g.Initializer {
		weights[t.Name] = t
	}
	done := 0
	var kept []*onnxpb.NodeProto
	for _, proto := range g.Node {
		n := onnx.Node{NodeProto: proto}
		if n.OpType == "Constant" && len(n.Attribute) == 1 && n.Attribute[0].T != nil {
			weights[n.Output[0]] = n.Attribute[0].T
		}
		w, scale, zero := weights[n.In(0)], weights[n.In(1)], weights[n.In(2)]
		if n.OpType != "DequantizeLinear" || w == nil || scale == nil || n.In(2) != "" && zero == nil || n.Int("block_size", 0) != 0 {
			kept = append(kept, proto)
			continue
		}
		t, err := dequantised(w, scale, zero, n.Int("axis", 1))
		if err != nil {
			return 0, fmt.Errorf("node %s: %w", n.Label(), err)
		}
		t.Name = n.Output[0]
		g.Initializer = append(g.Initializer, t)
		weights[t.Name] = t
		done++
	}
	g.Node = kept
	return done, nil
}

// dequantised returns (w − zero)·scale, with one scale and zero for all, or for each
// place on the axis.
func dequantised(w, scale, zero *onnxpb.TensorProto, axis int) (*onnxpb.TensorProto, error) {
	steps, err := onnx.Float32s(scale)
	if err != nil {
		return nil, err
	}
	numbers, err := small(w)
	if err != nil {
		return nil, err
	}
	zeros := make([]int64, len(steps))
	if zero != nil {
		if zeros, err = small(zero); err != nil {
			return nil, err
		}
	}
	shape := onnx.ShapeOf(w)
	if axis < 0 {
		axis += len(shape)
	}
	after := 1 // elements for each place on the axis
	if len(steps) > 1 {
		if axis < 0 || axis >= len(shape) || shape[axis] != len(steps) {
			return nil, fmt.Errorf("it has %d scales for a weight of shape %v", len(steps), shape)
		}
		for _, d := range shape[axis+1:] {
			after *= d
		}
	}
	if len(steps) == 0 || len(zeros) != len(steps) {
		return nil, fmt.Errorf("it has %d scales and %d zeros", len(steps), len(zeros))
	}
	out := make([]float32, len(numbers))
	for i, v := range numbers {
		k := i / after % len(steps)
		out[i] = float32(v-zeros[k]) * steps[k]
	}
	return onnx.FloatTensor("", out, shape...), nil
}

// small returns the integers of a tensor of one of the types that weights are
// quantised to.
func small(t *onnxpb.TensorProto) ([]int64, error) {
	switch onnxpb.TensorProto_DataType(t.DataType) {
	case onnxpb.TensorProto_INT8, onnxpb.TensorProto_UINT8:
		signed := t.DataType == int32(onnxpb.TensorProto_INT8)
		var out []int64
		for _, v := range t.Int32Data {
			out = append(out, int64(v))
		}
		for _, b := range t.RawData {
			if signed {
				out = append(out, int64(int8(b)))
			} else {
				out = append(out, int64(b))
			}
		}
		return out, nil
	}
	return onnx.Int64s(t)
}
