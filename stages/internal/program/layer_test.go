package program_test

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestLayer holds which value a name of the file is in the simplified graph, and the errors of names that
// stand for none: those inside what was fused, and tokens that are no sure grid.
func TestLayer(t *testing.T) {
	modeltest.Runtime(t)
	n, _ := small3(t, 17, []*onnxpb.TensorProto{modeltest.Noise("w", 0.7, 3, 3, 2, 2),
		onnx.IntTensor("tokens", []int64{0, 12, 14}, 3), modeltest.Noise("v", 0.3, 14, 14),
		modeltest.Noise("b", 0.2, 14), onnx.IntTensor("high", []int64{0, 3, 7, 8}, 4)},
		onnx.NewNode("conv", "Conv", []string{"input", "w"}, []string{"f"}),
		onnx.NewNode("relu", "Relu", []string{"f"}, []string{"r"}),
		onnx.NewNode("copy", "Identity", []string{"r"}, []string{"i"}),
		onnx.NewNode("drop", "Dropout", []string{"i"}, []string{"d"}),
		onnx.NewNode("tokens", "Reshape", []string{"d", "tokens"}, []string{"t"}),
		onnx.NewNode("linear", "MatMul", []string{"t", "v"}, []string{"l"}),
		onnx.NewNode("bias", "Add", []string{"l", "b"}, []string{"e"}),
		onnx.NewNode("active", "Asinh", []string{"e"}, []string{"a"}),
		onnx.NewNode("back", "Reshape", []string{"a", "high"}, []string{"c"}))
	slot := threaded{1, stagetest.NewSlot()}
	for layer, want := range map[string]string{"r": "r", "i": "r", "d": "r", "f": "f",
		"a":  "12 tokens could be 3×3 patches behind 3 others",
		"l":  `simplification removed it; the next value before it is "r"; the next value behind it is "e"`,
		"no": "no value of the model's graph, once it is simplified, is called so"} {
		got, err := n.Layer(t.Context(), slot, layer)
		if err != nil {
			if got = err.Error(); strings.Contains(got, want) {
				continue
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", layer, got, want)
		}
	}
}
