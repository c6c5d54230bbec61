package rewrite

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// TestKernelShapes holds that a kernel's shape is stated where the weights are known and it isn't stated
// already.
func TestKernelShapes(t *testing.T) {
	w := onnx.FloatTensor("w", make([]float32, 24), 2, 1, 3, 4)
	m := model(17, []*onnxpb.NodeProto{
		onnx.NewNode("", "Conv", []string{"x", "w"}, []string{"a"}),
		onnx.NewNode("", "Conv", []string{"x", "w"}, []string{"b"}, attr("kernel_shape", list64(5, 6))),
		onnx.NewNode("", "Conv", []string{"x", "a"}, []string{"c"}),
		onnx.NewNode("", "Gemm", []string{"x", "w"}, []string{"d"}),
	}, w)
	KernelShapes(m)
	var got [][]int
	for _, n := range m.Proto.Graph.Node {
		got = append(got, onnx.Node{NodeProto: n}.Ints("kernel_shape"))
	}
	if d := cmp.Diff([][]int{{3, 4}, {5, 6}, nil, nil}, got); d != "" {
		t.Error(d)
	}
}
