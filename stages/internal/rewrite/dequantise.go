package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Dequantise replaces weights that are stored as small integers, and dequantised by a DequantizeLinear in
// every run, by floats: (w − zero)·scale. It returns their number. Other nodes, such as nodes that quantise
// activations, stay. Call it after [SinglePrecision].
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
		if n.OpType != "DequantizeLinear" || w == nil || scale == nil || n.In(2) != "" && zero == nil {
			kept = append(kept, proto)
			continue
		}
		t, err := dequantised(w, scale, zero, n.Int("axis", 1), n.Int("block_size", 0))
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

// dequantised returns (w − zero)·scale, with one scale and zero for all, for each index on the axis, or,
// with blocks, for that many neighbours on it.
func dequantised(w, scale, zero *onnxpb.TensorProto, axis, block int) (*onnxpb.TensorProto, error) {
	steps, err := onnx.Float32s(scale)
	if err != nil {
		return nil, err
	}
	numbers, err := small(w)
	if err != nil {
		return nil, err
	}
	shape := onnx.ShapeOf(w)
	step, count := func(int) int { return 0 }, 1 // the index of an element's scale, and the number of scales
	if len(steps) != 1 || block > 0 {
		if axis < 0 {
			axis += len(shape)
		}
		if axis < 0 || axis >= len(shape) {
			return nil, fmt.Errorf("it has scales along axis %d for a weight of shape %v", axis, shape)
		}
		along, inner := shape[axis], 1 // elements on the axis, and elements for each index
		for _, d := range shape[axis+1:] {
			inner *= d
		}
		step, count = func(i int) int { return i / inner % along }, along
		if block > 0 {
			blocks := (along + block - 1) / block
			step = func(i int) int { return (i/inner/along*blocks+i/inner%along/block)*inner + i%inner }
			count = len(numbers) / max(along, 1) * blocks
		}
	}
	if len(steps) != count {
		return nil, fmt.Errorf("it has %d scales for a weight of shape %v", len(steps), shape)
	}
	zeros := make([]int64, count)
	if zero != nil {
		if zeros, err = small(zero); err != nil {
			return nil, err
		}
	}
	if len(zeros) != count {
		return nil, fmt.Errorf("it has %d scales and %d zeros", count, len(zeros))
	}
	out := make([]float32, len(numbers))
	for i, v := range numbers {
		k := step(i)
		out[i] = float32(v-zeros[k]) * steps[k]
	}
	return onnx.FloatTensor("", out, shape...), nil
}

// Integers of four bits, two in a byte; newer than the other types.
const (
	uint4 = 21
	int4  = 22
)

// small returns the integers of a tensor of one of the types to which weights are quantised.
func small(t *onnxpb.TensorProto) ([]int64, error) {
	if t.DataType != int4 && t.DataType != uint4 && t.DataType != int32(onnxpb.TensorProto_INT8) &&
		t.DataType != int32(onnxpb.TensorProto_UINT8) {
		return onnx.Int64s(t)
	}
	var bytes []byte
	for _, v := range t.Int32Data {
		bytes = append(bytes, byte(v))
	}
	bytes = append(bytes, t.RawData...)
	var out []int64
	for _, b := range bytes {
		switch t.DataType {
		case int4:
			out = append(out, int64(int8(b<<4)>>4), int64(int8(b)>>4))
		case uint4:
			out = append(out, int64(b&15), int64(b>>4))
		case int32(onnxpb.TensorProto_INT8):
			out = append(out, int64(int8(b)))
		default:
			out = append(out, int64(b))
		}
	}
	if t.DataType != int4 && t.DataType != uint4 {
		return out, nil
	}
	n := 1
	for _, d := range t.Dims {
		if d < 0 || d > int64(len(out)) || n > len(out) {
			return nil, fmt.Errorf("weight %q has the impossible shape %v", t.Name, t.Dims)
		}
		n *= int(d)
	}
	if len(out) != (n+1)/2*2 {
		return nil, fmt.Errorf("weight %q of shape %v has %d numbers", t.Name, t.Dims, len(out))
	}
	return out[:n], nil
}
