package model_test

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/model"
)

// described returns a file of a net for images of 8×8 pixels, whose axes it leaves open and takes in a
// layout, with these keys and values of metadata.
func described(t *testing.T, nhwc bool, notes ...string) string {
	t.Helper()
	m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 13}}, Graph: &onnxpb.GraphProto{Name: "g",
			Initializer: []*onnxpb.TensorProto{modeltest.Noise("w", 1.3, 4, 3, 3, 3),
				modeltest.Noise("v", 1.7, 4, 3)},
			Node: []*onnxpb.NodeProto{
				onnx.NewNode("axes", "Transpose", []string{"x"}, []string{"t"},
					onnx.Attr{Name: "perm", Value: []int64{0, 3, 1, 2}}),
				onnx.NewNode("conv", "Conv", []string{"t", "w"}, []string{"h"}),
				onnx.NewNode("relu", "Relu", []string{"h"}, []string{"r"}),
				onnx.NewNode("pool", "GlobalAveragePool", []string{"r"}, []string{"p"}),
				onnx.NewNode("flat", "Flatten", []string{"p"}, []string{"f"}),
				onnx.NewNode("linear", "MatMul", []string{"f", "v"}, []string{"y"})}}}}
	if !nhwc {
		m.Proto.Graph.Node = m.Proto.Graph.Node[1:]
		m.Proto.Graph.Node[0].Input[0] = "x"
	}
	free := onnx.Free
	m.SetInputs(onnx.Value{Name: "x", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{free, free, free, free},
		Known: true})
	m.SetOutputs(onnx.Value{Name: "y", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{free, 3}, Known: true})
	for i := 0; i < len(notes); i += 2 {
		m.Proto.MetadataProps = append(m.Proto.MetadataProps,
			&onnxpb.StringStringEntryProto{Key: notes[i], Value: notes[i+1]})
	}
	return modeltest.File(t, m)
}

// TestStanzaInTheFilesWords holds that the lines for an experiment feed pixels as the file says, in the
// layout that it takes, and that a file which says nothing is fed as before.
func TestStanzaInTheFilesWords(t *testing.T) {
	modeltest.Runtime(t)
	winML := []string{"Image.BitmapPixelFormat", "Bgr8", "Image.NominalPixelRange", "NominalRange_0_255"}
	for _, tt := range []struct {
		name  string
		nhwc  bool
		notes []string
		want  []string
	}{
		{"WinML", false, winML, []string{"preset: raw", "order: bgr", "size: 8"}},
		{"WinML, channels last", true, winML, []string{"preset: raw", "order: bgr", "layout: nhwc",
			"size: 8"}},
		{"statistics of no preset", false, []string{"mean", "[0.1, 0.2, 0.3]", "std", "[0.5]"},
			[]string{"preset: raw", "scale: 1", "mean: [0.1, 0.2, 0.3]", "std: 0.5", "size: 8"}},
		{"nothing", false, nil, []string{"preset: imagenet", "size: 8"}},
	} {
		path := described(t, tt.nhwc, tt.notes...)
		x, err := registry.Inspect(t.Context(), path, registry.Look{Size: "8"})
		if err != nil || x.Problem != "" {
			t.Fatalf("%s: %v, %s", tt.name, err, x.Problem)
		}
		_, lines, _ := strings.Cut(x.Stanza, "path: ")
		_, lines, _ = strings.Cut(lines, "\n")
		if got, want := strings.Fields(lines), strings.Fields(strings.Join(tt.want,
			" ")); strings.Join(got, " ") !=
			strings.Join(want, " ") {
			t.Errorf("%s: %q, want %q", tt.name, got, want)
		}
	}
	_, err := registry.Inspect(t.Context(), described(t, false), registry.Look{Size: "8", Layout: "hwc"})
	if f, ok := err.(*stages.FieldError); !ok || f.Field != "layout" {
		t.Errorf("a layout that there isn't: %v", err)
	}
}

// TestContradictionsAreTold holds that check tells once where an experiment feeds a model otherwise than the
// file says, and that the classes have the file's names.
func TestContradictionsAreTold(t *testing.T) {
	modeltest.Runtime(t)
	path := described(t, false, "Image.BitmapPixelFormat", "Bgr8", "names", "{0: 'cat', 1: 'dog', 2: 'fish'}")
	told := func(preset string) []string {
		p := model.ONNX.NewParams().(*model.ONNXParams)
		p.Path, p.Preset, p.Size = path, preset, picture.Size{H: 8, W: 8}
		var m registry.Models
		for range 2 {
			if err := m.Unfit(t.Context(), registry.Use{Name: "model", Stage: &model.ONNX,
				Params: p}); err != nil {
				t.Fatal(err)
			}
		}
		return m.Remarks
	}
	if got := told("imagenet"); len(got) != 1 || !strings.Contains(got[0], "the file says that blue comes "+
		"first") ||
		!strings.Contains(got[0], "with preset imagenet red comes first") {
		t.Errorf("%q", got)
	}
	if got := told("caffe-bgr"); len(got) > 0 {
		t.Errorf("blue first: %q", got)
	}
	d := modeltest.Model(t, model.ONNXParams{Path: path, Preset: "unit", Size: picture.Size{H: 8, W: 8}})
	if got := d.Facts["labels"]; got != "cat\ndog\nfish" {
		t.Errorf("names %q", got)
	}
}
