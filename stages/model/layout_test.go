package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/model"
)

// TestLayouts declares the input of nets, of both layouts, of one channel and of three, in every way: each
// dimension open or not. The layout is that of the net wherever the file doesn't fix another one.
func TestLayouts(t *testing.T) {
	modeltest.Runtime(t)
	last := op("Transpose", onnx.Attr{Name: "perm", Value: []int64{0, 3, 1, 2}})
	for _, tt := range []struct {
		layout        string
		channels      int
		height, width int
	}{
		{modelfile.NCHW, 3, 6, 9}, {modelfile.NHWC, 3, 6, 9}, {modelfile.NCHW, 1, 6, 9},
		{modelfile.NHWC, 1, 6, 9}, {modelfile.NCHW, 3, 6, 3}, {modelfile.NHWC, 3, 3, 6},
	} {
		net := tiny{channels: tt.channels, filters: 4, classes: 5, height: tt.height, width: tt.width,
			gain: 6}
		shape := []int{tt.channels, tt.height, tt.width}
		if tt.layout == modelfile.NHWC {
			shape = []int{tt.height, tt.width, tt.channels}
		}
		for open := range 8 {
			declared := []int{onnx.Free}
			for i, d := range shape {
				if open>>i&1 == 1 {
					d = onnx.Free
				}
				declared = append(declared, d)
			}
			m := net.model(onnx.Free)
			if tt.layout == modelfile.NHWC {
				begins(onnxpb.TensorProto_FLOAT, declared, last)(m)
			} else {
				begins(onnxpb.TensorProto_FLOAT, declared)(m)
			}
			t.Run(fmt.Sprintf("%s %d %v", tt.layout, tt.channels, declared[1:]), func(t *testing.T) {
				net.check(t, m, model.ONNXParams{Size: picture.Size{H: tt.height, W: tt.width}},
					modelfile.Spec{Input: "fed", Layout: tt.layout}, softmaxOf)
			})
		}
	}
}

// TestLayoutIsAsked holds that a net which takes images in both layouts is a question, that a parameter
// answers it, and that a wrong layout is an error that names the other.
func TestLayoutIsAsked(t *testing.T) {
	modeltest.Runtime(t)
	const side = 6
	m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 13}}, Graph: &onnxpb.GraphProto{Name: "g",
			Initializer: []*onnxpb.TensorProto{modeltest.Noise("w", 1.3, 3*side*side, 5)},
			Node: []*onnxpb.NodeProto{onnx.NewNode("flat", "Flatten", []string{"x"}, []string{"f"}),
				onnx.NewNode("linear", "MatMul", []string{"f", "w"}, []string{"y"})}}}}
	free := onnx.Free
	m.SetInputs(onnx.Value{Name: "x", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{free, free, free, free},
		Known: true})
	m.SetOutputs(onnx.Value{Name: "y", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{free, 5}, Known: true})
	p := model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Layout: "auto", Order: "auto",
		Kind: "auto",
		Size: picture.Size{H: side, W: side}}
	for _, layout := range []string{"auto", modelfile.NCHW, modelfile.NHWC} {
		p.Layout = layout
		trial, err := model.NewTrial(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		trial.Close()
		asked := len(trial.Notes) == 1 && strings.Contains(trial.Notes[0], "set the parameter layout")
		if asked != (layout == "auto") || layout == modelfile.NHWC && trial.Spec.Layout != layout {
			t.Errorf("%s: %s, notes %q", layout, trial.Spec.Layout, trial.Notes)
		}
	}

	for _, tt := range []struct {
		net          tiny
		layout, want string
	}{
		{small, modelfile.NHWC, "fails on images as nhwc with 3 channels: " +
			"a Conv gets 6 channels and takes 3; the layout may be nchw"},
		{tiny{channels: 2, filters: 4, classes: 5, height: 6, width: 9, gain: 6}, // which no image has
			"auto", "neither layout works"},
	} {
		net := tt.net.model(onnx.Free)
		begins(onnxpb.TensorProto_FLOAT, []int{free, free, free, free})(net)
		p.Path, p.Layout = modeltest.File(t, net), tt.layout
		if _, err := model.NewTrial(t.Context(), p); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.layout, err, tt.want)
		}
	}
}
