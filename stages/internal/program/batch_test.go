package program_test

import (
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestAtOnce checks the batch of programs: on a CPU as many images as its cache holds, twice as many without
// a backward pass, more for a fully connected net; on a GPU as many as requested.
func TestAtOnce(t *testing.T) {
	modeltest.Runtime(t)
	// A net of 224² pixels, made smaller, and a layer of so many neurons for all of them.
	dense := func(images, hidden int) model.ONNXParams {
		float := onnxpb.TensorProto_FLOAT
		m := &onnx.Model{Proto: &onnxpb.ModelProto{
			IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
			Graph: &onnxpb.GraphProto{Name: "g", Initializer: []*onnxpb.TensorProto{
				onnx.FloatTensor("w", make([]float32, 3*112*112*hidden), 3*112*112, hidden),
				modeltest.Noise("v", 0.9, hidden, 2),
			}, Node: []*onnxpb.NodeProto{
				onnx.NewNode("pool", "AveragePool", []string{"input"}, []string{"p"},
					onnx.Attr{Name: "kernel_shape", Value: []int64{2, 2}}, onnx.Attr{Name: "strides",
						Value: []int64{2, 2}}),
				onnx.NewNode("flat", "Flatten", []string{"p"}, []string{"f"}),
				onnx.NewNode("hidden", "Gemm", []string{"f", "w"}, []string{"h"}),
				onnx.NewNode("relu", "Relu", []string{"h"}, []string{"r"}),
				onnx.NewNode("out", "MatMul", []string{"r", "v"}, []string{"logits"}),
			}},
		}}
		m.SetInputs(onnx.Value{Name: "input", Elem: float, Shape: []int{images, 3, 224, 224}, Known: true})
		m.SetOutputs(onnx.Value{Name: "logits", Elem: float, Shape: []int{images, 2}, Known: true})
		return model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Kind: "logits"}
	}
	// 224 neurons have 8.4 million weights, and there are 75,714 activations.
	light, heavy, fixed := net(t, dense(-1, 32)), net(t, dense(-1, 224)), net(t, dense(5, 224))
	question := lower.Question{Rules: relevance.Derivative()}
	for _, tt := range []struct {
		name                string
		n                   *program.Net
		threads, asked      int
		forwards, backwards int
	}{
		{"few weights", light, 1, 16, 4, 2},
		{"few weights, few images", light, 1, 3, 3, 2},
		{"few weights, eight threads", light, 8, 16, 8, 8},
		{"many weights", heavy, 1, 16, 16, 16},
		{"many weights, three images", heavy, 1, 3, 3, 3},
		{"a batch of five", fixed, 1, 16, 5, 5},
		{"many weights, very many images", heavy, 1, 1000, 100, 100},
	} {
		slot := threaded{tt.threads, stagetest.NewSlot()}
		f, err := tt.n.Forward(t.Context(), slot, tt.asked)
		if err != nil {
			t.Fatal(err)
		}
		g, err := tt.n.Gradient(t.Context(), slot, question, tt.asked)
		if err != nil {
			t.Fatal(err)
		}
		if f.Batch != tt.forwards || g.Batch != tt.backwards {
			t.Errorf("%s: %d forward and %d backwards, not %d and %d", tt.name, f.Batch, g.Batch, tt.forwards,
				tt.backwards)
		}
	}
	if got := light.AtOnce(t.Context(), onGPU{stagetest.NewSlot()}, 16); got != 16 {
		t.Errorf("a GPU takes %d images", got)
	}
}

// onGPU is a slot on a GPU.
type onGPU struct{ stages.Slot }

func (onGPU) Device() stages.Device { return stages.Device{Class: "cuda", Threads: 1} }
