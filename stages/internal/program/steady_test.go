package program_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/ort"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// through writes a net that puts what a convolution makes of images, [N,33,size,size],
// through a node, and has sums of the squares of it as answers.
func through(t *testing.T, opset, size int, n *onnxpb.NodeProto) model.ONNXParams {
	t.Helper()
	noise := func(n int, seed float64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(math.Sin(seed * float64(i*i+1)))
		}
		return v
	}
	node := func(op, out string, in ...string) *onnxpb.NodeProto { return onnx.NewNode("", op, in, []string{out}) }
	x, columns := "conv", 33*size*size
	switch n.OpType {
	case "Log": // of what is positive
		x = "positive"
	case "ReduceMean", "ReduceSum": // over channels
		columns /= 33
	}
	n.Input, n.Output = []string{x}, []string{"y"}
	nodes := []*onnxpb.NodeProto{node("Conv", "conv", "input", "w"), node("Exp", "positive", "conv"), n,
		node("Flatten", "flat", "y"), node("Mul", "square", "flat", "flat"), node("MatMul", "logits", "square", "v")}
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: int64(opset)}},
		Graph: &onnxpb.GraphProto{Name: "g", Node: nodes, Initializer: []*onnxpb.TensorProto{
			onnx.FloatTensor("w", noise(99, 0.7), 33, 3, 1, 1), onnx.FloatTensor("v", noise(3*columns, 0.9), columns, 3)}},
	}}
	float := onnxpb.TensorProto_FLOAT
	m.SetInputs(onnx.Value{Name: "input", Elem: float, Shape: []int{-1, 3, size, size}, Known: true})
	m.SetOutputs(onnx.Value{Name: "logits", Elem: float, Shape: []int{-1, 3}, Known: true})
	return model.ONNXParams{Path: written(t, m), Preset: "unit", Size: size}
}

// TestSteady holds that the answers to an image and their derivatives have the same bits
// wherever in a batch of whatever size it stands and however many threads share the work,
// for each of the operators whose own kernels don't; and that they are what the file says.
func TestSteady(t *testing.T) {
	modeltest.Runtime(t)
	attrs := func(op string, attrs ...onnx.Attr) func() *onnxpb.NodeProto {
		return func() *onnxpb.NodeProto { return onnx.NewNode("", op, nil, nil, attrs...) }
	}
	channels := onnx.Attr{Name: "axes", Value: []int64{1}}
	for _, tt := range []struct {
		opset int
		make  func() *onnxpb.NodeProto
	}{
		{17, attrs("Elu")},
		{7, attrs("Elu", onnx.Attr{Name: "alpha", Value: float32(0.7)})},
		{17, attrs("Selu")},
		{17, attrs("Celu", onnx.Attr{Name: "alpha", Value: float32(1.3)})},
		{17, attrs("Softplus")},
		{18, attrs("Mish")},
		{17, attrs("Log")},
		{18, attrs("Log")},
		{9, attrs("Sin")},
		{17, attrs("Sin")},
		{17, attrs("Cos")},
		{17, attrs("LRN", onnx.Attr{Name: "size", Value: 3}, onnx.Attr{Name: "alpha", Value: float32(0.5)})},
		{17, attrs("ReduceMean", channels)},
		{11, attrs("ReduceSum", channels)},
	} {
		for _, size := range []int{7, 20, 51} {
			n := tt.make()
			t.Run(fmt.Sprint(n.OpType, tt.opset, "/", size), func(t *testing.T) {
				p := through(t, tt.opset, size, n)
				plain := asWritten(t, p.Path, 5, size)
				n := net(t, p)
				var answers, derivatives []float32
				for _, r := range []struct{ threads, batch int }{{1, 5}, {1, 2}, {2, 2}, {2, 3}, {3, 2}, {5, 3}, {3, 5}} {
					slot := threaded{r.threads, stagetest.NewSlot()}
					got := classify(t, n, slot, r.batch, 5)
					_, back := differentiate(t, n, slot, program.Question{Rules: relevance.Derivative()}, r.batch, 5)
					if answers == nil {
						answers, derivatives = got, back
						if d := deviation(got, plain); d > 1e-5 {
							t.Errorf("answers deviate by %.2g from those of the file itself", d)
						}
					}
					if !sameBits(got, answers) {
						t.Errorf("batch %d on %d threads gives other answers", r.batch, r.threads)
					}
					if !sameBits(back, derivatives) {
						t.Errorf("batch %d on %d threads gives other derivatives", r.batch, r.threads)
					}
				}
			})
		}
	}
}

// classify returns the answers to some images of a program that goes forward alone.
func classify(t *testing.T, n *program.Net, slot stages.Slot, batch, images int) (answers []float32) {
	t.Helper()
	f, err := n.Forward(slot, batch)
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < images; from += f.Batch {
		for i := range f.Batch {
			wave(min(from+i, images-1), f.Image(i))
		}
		if err := f.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range min(f.Batch, images-from) {
			answers = append(answers, f.Row(i)...)
		}
	}
	return answers
}

// asWritten returns the answers of a file to images of 3 channels, as ONNX Runtime gives
// them without programs of ours.
func asWritten(t *testing.T, path string, images, size int) []float32 {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := modeltest.Runtime(t)
	s, err := r.NewPlainSession(file, []string{"input"}, []string{"logits"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := ort.NewTensor[float32](r, images, 3, size, size)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := ort.NewTensor[float32](r, images, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for i := range images {
		wave(i, in.Data[i*3*size*size:(i+1)*3*size*size])
	}
	if err := s.Run(t.Context(), []ort.Value{in}, []ort.Value{out}); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(out.Data)
}

// TestSteadyRefuses holds that a node which has no channels to add up is an error.
func TestSteadyRefuses(t *testing.T) {
	modeltest.Runtime(t)
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
		Graph: &onnxpb.GraphProto{Name: "g", Node: []*onnxpb.NodeProto{
			onnx.NewNode("", "ReduceMax", []string{"input"}, []string{"x"}, onnx.Attr{Name: "axes", Value: []int64{1, 2, 3}}, onnx.Attr{Name: "keepdims", Value: 0}),
			onnx.NewNode("flat", "LRN", []string{"x"}, []string{"y"}, onnx.Attr{Name: "size", Value: 3}),
			onnx.NewNode("", "Reshape", []string{"y", "column"}, []string{"logits"}),
		}, Initializer: []*onnxpb.TensorProto{onnx.IntTensor("column", []int64{-1, 1}, 2)}},
	}}
	float := onnxpb.TensorProto_FLOAT
	m.SetInputs(onnx.Value{Name: "input", Elem: float, Shape: []int{-1, 3, 4, 4}, Known: true})
	m.SetOutputs(onnx.Value{Name: "logits", Elem: float, Shape: []int{-1, 1}, Known: true})
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	n, err := program.NewNet(modelfile.Model{Spec: modelfile.Spec{Input: "input", Output: "logits", Channels: 3, Height: 4, Width: 4, Classes: 1}, ONNX: b})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Forward(stagetest.NewSlot(), 2); !errors.Is(err, onnx.ErrUnsound) || !strings.Contains(err.Error(), `LRN "flat"`) {
		t.Errorf("got %v", err)
	}
}
