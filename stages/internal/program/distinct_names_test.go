package program_test

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// linear3 returns the nodes and weights of a net whose linear layer takes rows of pixels, which ONNX Runtime
// makes a Gemm between two Reshapes of: the shapes of its own are called by the names given.
func linear3(before, behind string) ([]*onnxpb.TensorProto, []*onnxpb.NodeProto) {
	return []*onnxpb.TensorProto{modeltest.Noise("w", 0.7, 9, 9), modeltest.Noise("k", 0.2, 9),
			onnx.IntTensor(before, []int64{0, 24, 9}, 3), onnx.IntTensor(behind, []int64{0, 3, 8, 9}, 4)},
		[]*onnxpb.NodeProto{
			onnx.NewNode("rows", "Reshape", []string{"input", before}, []string{"r"}),
			onnx.NewNode("relu", "Relu", []string{"r"}, []string{"a"}),
			onnx.NewNode("matmul", "MatMul", []string{"a", "w"}, []string{"mm"}),
			onnx.NewNode("bias", "Add", []string{"mm", "k"}, []string{"l"}),
			onnx.NewNode("active", "Asinh", []string{"l"}, []string{"t"}),
			onnx.NewNode("image", "Reshape", []string{"t", behind}, []string{"c"}),
		}
}

// TestDistinctNames holds that a file whose weights have the names that ONNX Runtime gives its own, as files
// have that it saved, runs as one with other names does, as it is written and differentiated; and that no
// program has a weight with a name that ONNX Runtime may make again when it loads the program.
func TestDistinctNames(t *testing.T) {
	modeltest.Runtime(t)
	slot := threaded{1, stagetest.NewSlot()}
	q := lower.Question{Rules: relevance.Derivative()}
	weights, nodes := linear3("before", "behind")
	plain, _ := small3(t, 17, weights, nodes...)
	answers, slopes := differentiate(t, plain, slot, q, 2, 2)
	for _, names := range [][2]string{{"gemm_input_shape", "gemm_output_shape"},
		{"gemm_output_shape", "gemm_input_shape"},
		{"gemm_output_reshape_new_shape", "gemm_input_reshape_new_shape"}} {
		for _, opset := range []int64{13, 17, 21} {
			weights, nodes := linear3(names[0], names[1])
			n, _ := small3(t, opset, weights, nodes...)
			y, d := differentiate(t, n, slot, q, 2, 2)
			if e := max(deviation(y, answers), deviation(d, slopes),
				deviation(classify(t, n, slot, 2, 2), answers)); e > 1e-6 {
				t.Errorf("%v, opset %d: answers or derivatives deviate by %.1e", names, opset, e)
			}
			g, err := n.Graph(t.Context(), slot, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range g.Proto.Graph.Initializer {
				if strings.HasPrefix(w.Name, "gemm_") {
					t.Errorf("%v, opset %d: the graph has the weight %q", names, opset, w.Name)
				}
			}
		}
	}
}
