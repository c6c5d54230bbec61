package model_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/model"
)

// hardened appends an operator without a known gradient to the model.
func hardened(m *onnx.Model) {
	f := m.Fragment()
	f.OpTo("hard", "Hardmax", []string{"logits"}, onnx.Attr{Name: "axis", Value: 1})
	m.After(f)
	m.SetOutputs(onnx.Value{Name: "hard", Elem: onnxpb.TensorProto_FLOAT})
}

// rounded rounds the answer to steps of a quarter; fused also takes its sigmoid.
func rounded(fused bool) func(m *onnx.Model) {
	return func(m *onnx.Model) {
		f := m.Fragment()
		step := f.Floats("step", []float32{0.25})
		zero := &onnxpb.TensorProto{Name: "zero", DataType: int32(onnxpb.TensorProto_UINT8),
			RawData: []byte{128}}
		m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer, zero)
		small := f.Op("QuantizeLinear", []string{"logits", step, "zero"})
		if fused {
			n := onnx.NewNode("fused", "QLinearSigmoid", []string{small, step, "zero", step, "zero"},
				[]string{"fused"})
			n.Domain = "com.microsoft"
			m.After(f)
			m.Proto.Graph.Node = append(m.Proto.Graph.Node, n)
			m.Import(n.Domain, 1)
			f, small = m.Fragment(), "fused"
		}
		f.OpTo("rounded", "DequantizeLinear", []string{small, step, "zero"})
		m.After(f)
		m.SetOutputs(onnx.Value{Name: "rounded", Elem: onnxpb.TensorProto_FLOAT})
	}
}

// whitened lets the model normalise its own input.
func whitened(m *onnx.Model) {
	f := m.Fragment()
	x := f.Op("Sub", []string{"pixels", f.Floats("mean", []float32{127.5})})
	f.OpTo("input", "Div", []string{x, f.Floats("deviation", []float32{127.5})})
	m.Before(f)
	m.SetInputs(onnx.Value{Name: "pixels", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{onnx.Free, 3, 32, 32},
		Known: true})
}

// renamed names a convolution's weight as PyTorch's exporter names computed weights.
func renamed(m *onnx.Model) {
	for _, t := range m.Proto.Graph.Initializer {
		if t.Name == "conv1.weight" {
			t.Name = "onnx::Conv_31"
		}
	}
	for _, n := range m.Proto.Graph.Node {
		if n.OpType == "Conv" && n.Input[1] == "conv1.weight" {
			n.Input[1] = "onnx::Conv_31"
		}
	}
}

func TestInspect(t *testing.T) {
	modeltest.Runtime(t)
	dir := filepath.Join(golden.Dir(t), "models")
	file := func(name string) string { return filepath.Join(dir, name+".onnx") }
	for _, tt := range []struct {
		name   string
		params model.ONNXParams
		holds  func(x *model.Inspection) bool
	}{
		{"a plain net", model.ONNXParams{Path: file("smallcnn")}, func(x *model.Inspection) bool {
			return x.Problem == "" && x.Gradient == "" && x.Producer == "pytorch 1.13.0" && x.Opset == 13 &&
				x.Feed.Classes == 10 && x.Feed.Height == 32 &&
				!x.OpenSize && x.OtherSize == 0 && x.Cut == "" && x.Rectifiers == 4 &&
				x.Norm == (model.Norm{}) && x.Leading == nil &&
				x.Final.String() == "/relu3/Relu_output_0 float32 [N, 16, 8, 8]" &&
				x.Middle.Name == "/relu2/Relu_output_0"
		}},
		{"a net that pools all places", model.ONNXParams{Path: file("gapcnn")},
			func(x *model.Inspection) bool {
				return x.OtherSize == 64 && !x.OpenSize
			}},
		{"an open size", model.ONNXParams{Path: file("gapcnn_dyn")}, func(x *model.Inspection) bool {
			return x.OpenSize && x.Feed.Height == 224
		}},
		{"a given open size",
			model.ONNXParams{Path: file("gapcnn_dyn"), Size: picture.Size{H: 40, W: 40}},
			func(x *model.Inspection) bool {
				return x.OpenSize && x.Feed.Height == 40
			}},
		{"batch normalisation apart", model.ONNXParams{Path: file("timm_resnet_basic_bn")},
			func(x *model.Inspection) bool {
				return x.Norm == (model.Norm{Separate: 13})
			}},
		{"batch normalisation merged", model.ONNXParams{Path: altered(t, "smallcnn", renamed)},
			func(x *model.Inspection) bool {
				return x.Norm == (model.Norm{Folded: true})
			}},
		{"no rectifier, and tokens", model.ONNXParams{Path: file("timm_vit_op17")},
			func(x *model.Inspection) bool {
				return x.Rectifiers == 0 && slices.Equal(x.Final.Shape, []string{"N", "17", "24"})
			}},
		{"a Softmax at the end", model.ONNXParams{Path: altered(t, "smallcnn", softmax)},
			func(x *model.Inspection) bool {
				return x.Cut == "Softmax" && x.Feed.Output == "logits" && !x.Feed.Probabilities
			}},
		{"NHWC", model.ONNXParams{Path: altered(t, "smallcnn", channelsLast)},
			func(x *model.Inspection) bool {
				return x.Feed.Layout == "nhwc" && x.Gradient == ""
			}},
		{"a batch of 1", model.ONNXParams{Path: altered(t, "smallcnn", baked)},
			func(x *model.Inspection) bool {
				return x.Feed.Batch == 1 && x.Gradient == ""
			}},
		{"normalisation inside", model.ONNXParams{Path: altered(t, "smallcnn", whitened)},
			func(x *model.Inspection) bool {
				return slices.Equal(x.Leading, []string{"Sub", "Div"})
			}},
		{"an operator without gradient", model.ONNXParams{Path: altered(t, "smallcnn", hardened),
			Kind: "logits"},
			func(x *model.Inspection) bool {
				return x.Problem == "" && strings.Contains(x.Gradient, "Hardmax") &&
					slices.Contains(x.Nodes, model.NodeCount{Operator: "Hardmax", Count: 1}) &&
					slices.Contains(x.Nodes, model.NodeCount{Operator: "Relu", Count: 4, Supported: true})
			}},
		{"rounded activations", model.ONNXParams{Path: altered(t, "smallcnn", rounded(false))},
			func(x *model.Inspection) bool {
				return x.Problem == "" && x.Final != nil &&
					strings.Contains(x.Gradient, `no gradient is known for QuantizeLinear`) &&
					strings.Contains(x.Gradient, "only its weights")
			}},
		{"rounded activations of ONNX Runtime's own",
			model.ONNXParams{Path: altered(t, "smallcnn", rounded(true))}, func(x *model.Inspection) bool {
				return x.Problem == "" && strings.Contains(x.Gradient, `node QLinearSigmoid "fused": `+
					`activations are rounded to integers`)
			}},
		{"a Sigmoid at the end", model.ONNXParams{Path: altered(t, "smallcnn", multilabel)},
			func(x *model.Inspection) bool {
				return x.Cut == "Sigmoid" && x.Feed.Output == "logits" && x.Feed.Independent &&
					!x.Feed.Probabilities && x.Gradient == ""
			}},
		{"an input of integers", model.ONNXParams{Path: altered(t, "smallcnn", integers)},
			func(x *model.Inspection) bool {
				return strings.Contains(x.Problem, "floating-point inputs") && x.Opset == 13 && x.Final == nil
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := model.ONNX.NewParams().(*model.ONNXParams)
			p.Path, p.Size, p.Input = tt.params.Path, tt.params.Size, tt.params.Input
			x, err := model.Inspect(context.Background(), *p)
			if err != nil {
				t.Fatal(err)
			}
			if !tt.holds(&x) {
				t.Errorf("%+v\nmiddle %v, final %v", x, x.Middle, x.Final)
			}
		})
	}
}

// integers makes the net's input unable to take images.
func integers(m *onnx.Model) {
	m.SetInputs(onnx.Value{Name: "input", Elem: onnxpb.TensorProto_UINT8, Shape: []int{1, 3, 32, 32},
		Known: true})
}

// opened leaves the size open, of a net that takes only its own size.
func opened(m *onnx.Model) {
	m.SetInputs(onnx.Value{Name: "input", Elem: onnxpb.TensorProto_FLOAT,
		Shape: []int{onnx.Free, 3, onnx.Free, onnx.Free}, Known: true})
}

// TestInspectRefuses checks that requests for what the model doesn't have are errors that name the parameter.
func TestInspectRefuses(t *testing.T) {
	modeltest.Runtime(t)
	plain := filepath.Join(golden.Dir(t), "models", "smallcnn.onnx")
	for _, tt := range []struct {
		field, want string
		params      model.ONNXParams
	}{
		{"size", "size is 48, but the model only takes images of [3 32 32]",
			model.ONNXParams{Path: plain, Size: picture.Size{H: 48, W: 48}}},
		{"size", "size is 48, but the model takes others, such as 32",
			model.ONNXParams{Path: altered(t, "smallcnn", opened), Size: picture.Size{H: 48, W: 48}}},
		{"input", `no input "pixels"`, model.ONNXParams{Path: plain, Input: "pixels"}},
		{"input", "floating-point inputs",
			model.ONNXParams{Path: altered(t, "smallcnn", integers), Input: "input"}},
		{"output", `no output "x"`, model.ONNXParams{Path: plain, Output: "x"}},
	} {
		p := model.ONNX.NewParams().(*model.ONNXParams)
		p.Path, p.Size, p.Input, p.Output = tt.params.Path, tt.params.Size, tt.params.Input, tt.params.Output
		_, err := model.Inspect(t.Context(), *p)
		var field *stages.FieldError
		if !errors.As(err, &field) || field.Field != tt.field || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one of %s with %q", err, tt.field, tt.want)
		}
	}
}

// TestInspectTraining checks that batch normalisation exported in training mode is detected without a run.
func TestInspectTraining(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(golden.Dir(t), "models", "timm_resnet_basic_bn.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	on := int64(1)
	for _, n := range m.Proto.Graph.Node {
		if n.OpType == "BatchNormalization" {
			n.Attribute = append(n.Attribute,
				&onnxpb.AttributeProto{Name: "training_mode", Type: onnxpb.AttributeProto_INT, I: &on})
			break
		}
	}
	m.Proto.ProducerName = "evil \x1b[31m"
	if b, err = m.Encode(); err != nil {
		t.Fatal(err)
	}
	x, err := model.Inspect(context.Background(), model.ONNXParams{Path: write(t, "net.onnx", b)})
	if err != nil {
		t.Fatal(err)
	}
	if x.Norm != (model.Norm{Separate: 13, Training: 1}) {
		t.Errorf("batch normalisation %+v", x.Norm)
	}
	if strings.Contains(x.Producer, "\x1b") {
		t.Errorf("the producer %q can paint the terminal", x.Producer)
	}
}
