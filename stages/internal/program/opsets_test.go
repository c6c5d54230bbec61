package program_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/internal/rewrite"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestOpsets holds that a net whose operators mean the same at every opset has the same answers and
// derivatives at all, the newest included, bit by bit.
func TestOpsets(t *testing.T) {
	modeltest.Runtime(t)
	slot := threaded{1, stagetest.NewSlot()}
	var answers, slopes []float32
	for opset := rewrite.Opset; opset <= rewrite.Newest; opset++ {
		weights := []*onnxpb.TensorProto{modeltest.Noise("w", 0.7, 3, 3, 2, 2),
			modeltest.Noise("b", 0.3, 3), modeltest.Noise("v", 0.4, 56, 56),
			onnx.IntTensor("long", []int64{0, 3, 56}, 3), onnx.IntTensor("high", []int64{0, 3, 7, 8}, 4),
			onnx.IntTensor("axes", []int64{1}, 1), onnx.IntTensor("axis", []int64{3}, 1)}
		n, _ := small3(t, int64(opset), weights,
			onnx.NewNode("conv", "Conv", []string{"input", "w", "b"}, []string{"f"}),
			onnx.NewNode("relu", "Relu", []string{"f"}, []string{"r"}),
			onnx.NewNode("pool", "MaxPool", []string{"r"}, []string{"p"},
				onnx.Attr{Name: "kernel_shape", Value: []int64{3, 3}},
				onnx.Attr{Name: "pads", Value: []int64{1, 1, 1, 1}}),
			onnx.NewNode("reshape", "Reshape", []string{"p", "long"}, []string{"l"}),
			onnx.NewNode("turn", "Transpose", []string{"l"}, []string{"turned"},
				onnx.Attr{Name: "perm", Value: []int64{0, 1, 2}}),
			onnx.NewNode("linear", "MatMul", []string{"turned", "v"}, []string{"s"}),
			onnx.NewNode("softmax", "Softmax", []string{"s"}, []string{"q"}, onnx.Attr{Name: "axis",
				Value: -1}),
			onnx.NewNode("wide", "Unsqueeze", []string{"q", "axis"}, []string{"u"}),
			onnx.NewNode("narrow", "Squeeze", []string{"u", "axis"}, []string{"n"}),
			onnx.NewNode("back", "Reshape", []string{"n", "high"}, []string{"h"}),
			onnx.NewNode("round", "Cast", []string{"h"}, []string{"c"}, onnx.Attr{Name: "to", Value: 1}))
		y, d := differentiate(t, n, slot, lower.Question{Rules: relevance.Derivative()}, 2, 2)
		if opset == rewrite.Opset {
			answers, slopes = y, d
		}
		if e := deviation(classify(t, n, slot, 2, 2), answers); e > 1e-6 {
			t.Errorf("opset %d: the answers deviate by %.1e from those at %d", opset, e, rewrite.Opset)
		}
		if deviation(y, answers) != 0 || deviation(d, slopes) != 0 {
			t.Errorf("opset %d: answers or derivatives aren't those at %d", opset, rewrite.Opset)
		}
	}
}

// TestQuantisedOpsets holds that activations rounded to 8 bits are refused with the same reason at every
// opset, whatever attributes the operator has gained.
func TestQuantisedOpsets(t *testing.T) {
	modeltest.Runtime(t)
	slot := threaded{1, stagetest.NewSlot()}
	for opset := int64(13); opset <= 25; opset++ {
		zero := &onnxpb.TensorProto{Name: "zero", DataType: int32(onnxpb.TensorProto_UINT8),
			RawData: []byte{7}}
		quantise := onnx.NewNode("q", "QuantizeLinear", []string{"input", "step", "zero"}, []string{"small"})
		if opset >= 19 {
			quantise.Attribute = append(quantise.Attribute,
				onnx.NewNode("", "", nil, nil, onnx.Attr{Name: "saturate", Value: 1}).Attribute...)
		}
		n, _ := small3(t, opset, []*onnxpb.TensorProto{onnx.FloatTensor("step", []float32{0.1}), zero},
			quantise, onnx.NewNode("d", "DequantizeLinear", []string{"small", "step", "zero"}, []string{"c"}))
		_, err := n.Gradient(t.Context(), slot, lower.Question{Rules: relevance.Derivative()}, 2)
		if unsupported := (*relevance.UnsupportedError)(nil); !errors.As(err, &unsupported) ||
			!unsupported.Quantised || !strings.Contains(err.Error(), onnx.Quantised) {
			t.Errorf("opset %d: error %v", opset, err)
		}
	}
}

// TestSignedQuantisedOpsets holds that activations rounded to 8 bits with a sign run at every opset, with the
// same answers, where a view follows that ONNX Runtime moves the rounding behind.
func TestSignedQuantisedOpsets(t *testing.T) {
	modeltest.Runtime(t)
	slot := threaded{1, stagetest.NewSlot()}
	var answers []float32
	for _, opset := range []int64{17, 19, 21, 23, 25} {
		zero := &onnxpb.TensorProto{Name: "zero", DataType: int32(onnxpb.TensorProto_INT8),
			RawData: []byte{7}}
		n, _ := small3(t, opset, []*onnxpb.TensorProto{onnx.FloatTensor("step", []float32{0.1}), zero,
			onnx.IntTensor("shape", []int64{0, 0, 0, -1}, 4)},
			onnx.NewNode("q", "QuantizeLinear", []string{"input", "step", "zero"}, []string{"small"}),
			onnx.NewNode("d", "DequantizeLinear", []string{"small", "step", "zero"}, []string{"wide"}),
			onnx.NewNode("r", "Reshape", []string{"wide", "shape"}, []string{"c"}))
		got := classify(t, n, slot, 2, 2)
		if answers == nil {
			answers = got
		}
		if e := deviation(got, answers); e > 1e-6 {
			t.Errorf("opset %d: the answers deviate by %.1e from those at 17", opset, e)
		}
	}
}
