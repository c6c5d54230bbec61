package onnx

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// sparsely returns a weight of 2×3 that has two numbers.
func sparsely(dims []int64, indices []int64, shape ...int) *onnxpb.SparseTensorProto {
	return &onnxpb.SparseTensorProto{Values: FloatTensor("w", []float32{5, 7}, 2),
		Indices: IntTensor("", indices, shape...), Dims: dims}
}

func TestSparse(t *testing.T) {
	want := FloatTensor("w", []float32{0, 0, 5, 7, 0, 0}, 2, 3)
	listed := sparsely([]int64{2, 3}, []int64{2, 3}, 2)
	listed.Values.RawData, listed.Values.FloatData = nil, []float32{5, 7}
	for name, s := range map[string]*onnxpb.SparseTensorProto{
		"numbers":    sparsely([]int64{2, 3}, []int64{2, 3}, 2),
		"indices":    sparsely([]int64{2, 3}, []int64{0, 2, 1, 0}, 2, 2),
		"not in raw": listed,
		"other order": {Values: FloatTensor("w", []float32{7, 5}, 2),
			Indices: IntTensor("", []int64{3, 2}, 2), Dims: []int64{2, 3}},
	} {
		p := tiny()
		p.Graph.Initializer, p.Graph.SparseInitializer = nil, []*onnxpb.SparseTensorProto{s}
		said := &onnxpb.NodeProto{OpType: "Constant", Output: []string{"c"},
			Attribute: []*onnxpb.AttributeProto{
				{Name: "sparse_value", Type: onnxpb.AttributeProto_SPARSE_TENSOR, SparseTensor: s}}}
		body := &onnxpb.GraphProto{SparseInitializer: []*onnxpb.SparseTensorProto{s}}
		p.Graph.Node = append(p.Graph.Node, said,
			&onnxpb.NodeProto{OpType: "If", Output: []string{"d"}, Attribute: []*onnxpb.AttributeProto{
				{Name: "then_branch", Type: onnxpb.AttributeProto_GRAPH, G: body}}})
		p.Functions = []*onnxpb.FunctionProto{{Name: "f",
			Node: []*onnxpb.NodeProto{proto.Clone(said).(*onnxpb.NodeProto)}}}
		m, err := Parse(encode(t, p))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		nodes := m.Proto.Graph.Node
		dense := []*onnxpb.TensorProto{m.Proto.Functions[0].Node[0].Attribute[0].T,
			m.Proto.Graph.Initializer[0], nodes[1].Attribute[0].T, nodes[2].Attribute[0].G.Initializer[0]}
		for _, got := range dense {
			if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
		if m.Proto.Graph.SparseInitializer != nil || nodes[1].Attribute[0].Name != "value" ||
			len(m.Inputs()) != 1 {
			t.Errorf("%s: something sparse is left", name)
		}
	}
}

func TestSparseRefuses(t *testing.T) {
	elsewhere := sparsely([]int64{2, 3}, []int64{2, 3}, 2)
	elsewhere.Values.DataLocation = onnxpb.TensorProto_EXTERNAL
	words := sparsely([]int64{2, 3}, []int64{2, 3}, 2)
	words.Values.DataType, words.Values.RawData = int32(onnxpb.TensorProto_STRING), nil
	for _, tt := range []struct {
		in   *onnxpb.SparseTensorProto
		want string
	}{
		{&onnxpb.SparseTensorProto{}, "has no values or no indices"},
		{sparsely([]int64{2, 3}, []int64{2, 6}, 2), "has no element [6]"},
		{sparsely([]int64{2, 3}, []int64{2, -1}, 2), "has no element [-1]"},
		{sparsely([]int64{2, 3}, []int64{0, 2, 0, 3}, 2, 2), "has no element [0 3]"},
		{sparsely([]int64{2, 3}, []int64{2}, 1), "its indices have shape [1]"},
		{sparsely([]int64{2, 3}, []int64{2, 3}, 2, 1), "its indices have shape [2 1]"},
		{sparsely([]int64{2, 3}, []int64{0, 2, 1, 0}, 2, 2, 1), "its indices have shape [2 2 1]"},
		{sparsely([]int64{2, -3}, []int64{2, 3}, 2), "impossible shape"},
		{sparsely([]int64{1 << 10, 1 << 11}, []int64{2, 3}, 2), "it must be stored dense"},
		{elsewhere, "stands in another file"},
		{words, "holds STRING"},
	} {
		p := tiny()
		p.Graph.Initializer, p.Graph.SparseInitializer = nil, []*onnxpb.SparseTensorProto{tt.in}
		if _, err := Parse(encode(t, p)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one with %q", err, tt.want)
		}
	}
	many := tiny()
	for i := range 3 {
		s := sparsely([]int64{1 << 10, 1 << 9}, []int64{2, 3}, 2)
		s.Values.Name = string(rune('a' + i))
		many.Graph.SparseInitializer = append(many.Graph.SparseInitializer, s)
	}
	if _, err := Parse(encode(t, many)); err == nil ||
		!strings.Contains(err.Error(), `"c" of shape [1024 512] has 2 values: it must be stored dense`) {
		t.Errorf("many sparse weights: error %v", err)
	}
}
