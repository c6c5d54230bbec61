package program_test

import (
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestCountedPadding holds that programs that go back answer as the file does that has an
// AveragePool of opset 19 or later, in which padding counts and ceil_mode lets windows reach
// beyond it; or say that ONNX Runtime gets the file wrong.
func TestCountedPadding(t *testing.T) {
	modeltest.Runtime(t)
	for _, tt := range []struct {
		name                  string
		kernel, strides, pads []int64
		ceil                  int
		wrong                 bool
	}{
		{"beyond the image", []int64{3, 3}, []int64{2, 2}, nil, 1, false},
		{"beyond the padding", []int64{3, 2}, []int64{2, 2}, []int64{1, 1, 1, 1}, 1, false},
		{"without ceil_mode", []int64{3, 3}, []int64{2, 2}, []int64{1, 1, 1, 1}, 0, false},
		{"padded at the end", []int64{3, 3}, []int64{2, 2}, []int64{0, 1, 1, 1}, 1, false},
		{"padded along one axis", []int64{2, 2}, []int64{2, 2}, []int64{1, 0, 1, 0}, 1, true},
		{"padded along one axis, without ceil_mode", []int64{2, 2}, []int64{2, 2}, []int64{1, 0, 1, 0}, 0, true},
	} {
		attrs := []onnx.Attr{{Name: "kernel_shape", Value: tt.kernel}, {Name: "strides", Value: tt.strides},
			{Name: "ceil_mode", Value: tt.ceil}, {Name: "count_include_pad", Value: 1}}
		if tt.pads != nil {
			attrs = append(attrs, onnx.Attr{Name: "pads", Value: tt.pads})
		}
		m := &onnx.Model{Proto: &onnxpb.ModelProto{
			IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 20}},
			Graph: &onnxpb.GraphProto{Name: "g", Initializer: []*onnxpb.TensorProto{noise("w", 0.7, 3, 3, 2, 2)}, Node: []*onnxpb.NodeProto{
				onnx.NewNode("pool", "AveragePool", []string{"input"}, []string{"p"}, attrs...),
				onnx.NewNode("conv", "Conv", []string{"p", "w"}, []string{"c"}),
				onnx.NewNode("mean", "GlobalAveragePool", []string{"c"}, []string{"m"}),
				onnx.NewNode("flat", "Flatten", []string{"m"}, []string{"logits"}),
			}},
		}}
		m.SetInputs(onnx.Value{Name: "input", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{-1, 3, 8, 9}, Known: true})
		m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{-1, 3}, Known: true})
		n := net(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit"})
		slot := threaded{1, stagetest.NewSlot()}
		if tt.wrong {
			_, err := n.Gradient(t.Context(), slot, program.Question{Rules: relevance.Derivative()}, 2)
			if err == nil || !strings.Contains(err.Error(), "divides its windows by wrong numbers") {
				t.Errorf("%s: error %v", tt.name, err)
			}
			continue
		}
		want := classify(t, n, slot, 2, 2)
		got, _ := differentiate(t, n, slot, program.Question{Rules: relevance.Derivative()}, 2, 2)
		for i := range want {
			if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-6) {
				t.Errorf("%s: answer %d is %v, the file's %v", tt.name, i, got[i], want[i])
			}
		}
	}
}
