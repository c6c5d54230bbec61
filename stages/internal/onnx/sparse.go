package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Sparse weights may be made dense if they have at most this many elements together, or for each stored
// one. Otherwise a few bytes of a file could demand all memory.
const (
	anyway   = 1 << 20
	sparsest = 1 << 10
)

// makeDense makes the sparse weights of a model dense, and those of Constant nodes, so that no other code
// meets any.
func makeDense(m *onnxpb.ModelProto) error {
	var d densifier
	for _, f := range m.Functions {
		if err := d.nodes(f.Node); err != nil {
			return err
		}
	}
	return d.graph(m.Graph)
}

// A densifier counts the elements that it made, and those that were stored.
type densifier struct{ made, stored int64 }

func (d *densifier) graph(g *onnxpb.GraphProto) error {
	for _, s := range g.SparseInitializer {
		t, err := d.dense(s)
		if err != nil {
			return err
		}
		g.Initializer = append(g.Initializer, t)
	}
	g.SparseInitializer = nil
	return d.nodes(g.Node)
}

func (d *densifier) nodes(nodes []*onnxpb.NodeProto) error {
	for _, n := range nodes {
		for _, a := range n.Attribute {
			if n.OpType != "Constant" || a.Name != "sparse_value" || a.SparseTensor == nil {
				continue
			}
			t, err := d.dense(a.SparseTensor)
			if err != nil {
				return fmt.Errorf("node %s: %w", Node{n}.Label(), err)
			}
			a.Name, a.Type, a.T, a.SparseTensor = "value", onnxpb.AttributeProto_TENSOR, t, nil
		}
		for _, inner := range Bodies(n) {
			if err := d.graph(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// dense returns s as a dense tensor: its values, at indices in C order or with one index for each axis, and
// zeros elsewhere.
func (d *densifier) dense(s *onnxpb.SparseTensorProto) (*onnxpb.TensorProto, error) {
	values, indices := s.GetValues(), s.GetIndices()
	name := values.GetName()
	wrong := func(format string, a ...any) error {
		return fmt.Errorf("the sparse weight %q of shape %v %s", name, s.Dims, fmt.Sprintf(format, a...))
	}
	if values == nil || indices == nil {
		return nil, wrong("has no values or no indices")
	}
	for _, t := range []*onnxpb.TensorProto{values, indices} {
		if err := checkTensor(t); err != nil {
			return nil, fmt.Errorf("a sparse weight: %w", err)
		}
	}
	width := ElemSize(onnxpb.TensorProto_DataType(values.DataType))
	if width == 0 || width > 8 || values.DataType == int32(onnxpb.TensorProto_COMPLEX64) {
		return nil, wrong("holds %s", onnxpb.TensorProto_DataType(values.DataType))
	}
	t := &onnxpb.TensorProto{Name: name, Dims: s.Dims, DataType: values.DataType}
	size, err := rawSize(t)
	if err != nil {
		return nil, err
	}
	stored := raw(values, width)
	count := len(stored) / width
	d.made, d.stored = d.made+size/int64(width), d.stored+int64(count)
	if d.made > max(anyway, sparsest*d.stored) || size > MaxBytes {
		return nil, wrong("has %d values: it must be stored dense", count)
	}
	at, err := Int64s(indices)
	if err != nil {
		return nil, err
	}
	axes := s.Dims
	if len(indices.Dims) == 1 {
		axes = []int64{size / int64(width)}
	}
	if !slices.Equal(indices.Dims, []int64{int64(count), int64(len(axes))}[:min(len(indices.Dims), 2)]) ||
		len(at) != count*len(axes) {
		return nil, wrong("has %d values, and its indices have shape %v", count, indices.Dims)
	}
	t.RawData = make([]byte, size)
	for i := range count {
		k, index := int64(0), at[i*len(axes):(i+1)*len(axes)]
		for axis, p := range index {
			if p < 0 || p >= axes[axis] {
				return nil, wrong("has no element %v", index)
			}
			k = k*axes[axis] + p
		}
		copy(t.RawData[k*int64(width):], stored[i*width:(i+1)*width])
	}
	return t, nil
}

// raw returns the elements of t, of this many bytes each, in the form of raw data.
func raw(t *onnxpb.TensorProto, width int) []byte {
	if t.RawData != nil {
		return t.RawData
	}
	var out []byte
	put := func(bits uint64) {
		out = append(out, binary.LittleEndian.AppendUint64(nil, bits)[:width]...)
	}
	for _, v := range t.FloatData {
		put(uint64(math.Float32bits(v)))
	}
	for _, v := range t.DoubleData {
		put(math.Float64bits(v))
	}
	for _, v := range t.Int32Data {
		put(uint64(v))
	}
	for _, v := range t.Int64Data {
		put(uint64(v))
	}
	for _, v := range t.Uint64Data {
		put(v)
	}
	return out
}
