package model_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
)

// small is a net that ends with logits.
var small = tiny{channels: 3, filters: 4, classes: 5, height: 6, width: 9, gain: 6}

// between returns the net small with a node between its features and its linear layer.
func between(opset int64, op string, inputs []string, attrs []onnx.Attr,
	weights ...*onnxpb.TensorProto) *onnx.Model {
	m := small.model(onnx.Free)
	m.Proto.OpsetImport[0].Version = opset
	g := m.Proto.Graph
	g.Initializer = append(g.Initializer, weights...)
	i := slices.IndexFunc(g.Node, func(n *onnxpb.NodeProto) bool { return n.Name == "linear" })
	g.Node = slices.Insert(g.Node, i, onnx.NewNode("between", op, inputs, []string{"d"}, attrs...))
	g.Node[i+1].Input[0] = "d"
	return m
}

func boolean(name string, v byte) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{Name: name, DataType: int32(onnxpb.TensorProto_BOOL), RawData: []byte{v}}
}

// TestDropoutInTrainingMode holds that a Dropout in training mode changes nothing, in the trial, in what
// model/ predict answers and in gradients, and that it is told; one in evaluation mode leaves the file as it
// is.
func TestDropoutInTrainingMode(t *testing.T) {
	modeltest.Runtime(t)
	want := predictions(t, modeltest.Model(t,
		model.ONNXParams{Path: modeltest.File(t, small.model(onnx.Free)), Preset: "unit"}))
	ratio := onnx.FloatTensor("ratio", []float32{0.9})
	for _, tt := range []struct {
		name  string
		model *onnx.Model
		told  bool
	}{
		{"training", between(13, "Dropout", []string{"f", "ratio", "on"}, nil, ratio, boolean("on", 1)),
			true},
		{"training, by the default ratio", between(13, "Dropout", []string{"f", "", "on"}, nil,
			boolean("on", 1)),
			true},
		{"evaluation", between(13, "Dropout", []string{"f", "ratio", "on"}, nil, ratio, boolean("on", 0)),
			false},
	} {
		p := model.ONNXParams{Path: modeltest.File(t, tt.model), Preset: "unit", Layout: "auto",
			Order: "auto",
			Kind:  "auto"}
		for range 3 {
			if got := predictions(t, modeltest.Model(t, p)); got != want {
				t.Errorf("%s: answers %s, want those without Dropout, %s", tt.name, got, want)
			}
		}
		trial, err := model.NewTrial(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		trial.Close()
		if told := len(trial.Notes) == 1 && strings.Contains(trial.Notes[0],
			"training mode"); told != tt.told {
			t.Errorf("%s: notes %q", tt.name, trial.Notes)
		}
		x, err := model.Inspect(t.Context(), p)
		if err != nil || x.Problem != "" || x.Gradient != "" || (len(x.Notes) == 1) != tt.told {
			t.Errorf("%s: %v, %q, %q, notes %q", tt.name, err, x.Problem, x.Gradient, x.Notes)
		}
	}
}

// TestRandomAnswersAreRefused holds that a model whose answer is another at every call is no model, and that
// random numbers which don't reach the answer, or only lend it their shape, don't matter.
func TestRandomAnswersAreRefused(t *testing.T) {
	modeltest.Runtime(t)
	for op, inputs := range map[string][]string{"RandomNormalLike": {"f"}, "RandomUniformLike": {"f"},
		"Bernoulli": {"p"}} {
		m := between(15, op, inputs, nil)
		if op == "Bernoulli" {
			i := slices.IndexFunc(m.Proto.Graph.Node,
				func(n *onnxpb.NodeProto) bool { return n.Name == "between" })
			m.Proto.Graph.Node = slices.Insert(m.Proto.Graph.Node, i,
				onnx.NewNode("p", "Sigmoid", []string{"f"}, []string{"p"}))
		}
		_, err := model.NewTrial(t.Context(), model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit",
			Layout: "auto", Order: "auto", Kind: "auto"})
		if err == nil || !strings.Contains(err.Error(),
			"node "+op+` "between" makes other numbers at every call`) {
			t.Errorf("%s: %v", op, err)
		}
	}
	m := between(15, "Identity", []string{"f"}, nil)
	g := m.Proto.Graph
	g.Node = append(g.Node, onnx.NewNode("noise", "RandomNormalLike", []string{"f"}, []string{"noise"}),
		onnx.NewNode("size", "Shape", []string{"noise"}, []string{"size"}),
		onnx.NewNode("again", "Reshape", []string{"logits", "row"}, []string{"rows"}))
	g.Initializer = append(g.Initializer, onnx.IntTensor("row", []int64{-1, 5}, 2))
	s := modeltest.Spec(t, modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit"}))
	if s.Classes != 5 || s.Layout != modelfile.NCHW {
		t.Errorf("noise that nothing reads: %+v", s)
	}
}
