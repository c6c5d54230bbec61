package model_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// shortened divides the answer by its norm.
func shortened(m *onnx.Model) {
	f := m.Fragment()
	length := f.Op("ReduceL2", []string{"logits"}, onnx.Attr{Name: "axes", Value: []int64{1}})
	f.OpTo("direction", "Div", []string{"logits", length})
	m.After(f)
	m.SetOutputs(onnx.Value{Name: "direction", Elem: onnxpb.TensorProto_FLOAT})
}

// summed makes one class of all.
func summed(m *onnx.Model) {
	f := m.Fragment()
	f.OpTo("sum", "ReduceMean", []string{"logits"}, onnx.Attr{Name: "axes", Value: []int64{1}},
		onnx.Attr{Name: "keepdims", Value: 1})
	m.After(f)
	m.SetOutputs(onnx.Value{Name: "sum", Elem: onnxpb.TensorProto_FLOAT})
}

// TestTrial checks that a trial and a run reject the same methods with the same words, on nets that some
// methods don't fit.
func TestTrial(t *testing.T) {
	modeltest.Runtime(t)
	dir := filepath.Join(golden.Dir(t), "models")
	methods := map[string]*stages.Stage{
		"agi": &attribute.AGI, "constant": &attribute.Constant, "occlusion": &attribute.Occlusion,
		"saliency": &attribute.Saliency, "grad-cam": &attribute.GradCAM,
		"ablation-cam": &attribute.AblationCAM, "guided-backprop": &attribute.GuidedBackprop,
		"deeplift": &attribute.DeepLIFT, "rap": &attribute.RAP,
		"clrp": &attribute.CLRP, "crap": &attribute.CRAP, "lrp-z-plus": &attribute.LRPZPlus,
		"left-ig":       &attribute.LeftIG,
		"raw-attention": &attribute.RawAttention, "transition-attention": &attribute.TransitionAttention,
		"tibav": &attribute.TIBAV, "predict": &model.Predict,
	}
	const attentive = "raw-attention transition-attention tibav "
	for _, tt := range []struct {
		name, path string
		kind       string // of the output, where it isn't found
		refused    string // methods
		want       string // of one of the errors
	}{
		{"convolutions", filepath.Join(dir, "smallcnn.onnx"), "auto", attentive,
			"no attention of tokens to tokens"},
		{"attention", filepath.Join(dir, "timm_vit_op17.onnx"), "auto", "", ""},
		{"no rule", altered(t, "smallcnn", shortened), "logits", attentive + "deeplift", "ReduceL2"},
		{"no gradient", altered(t, "smallcnn", hardened), "logits",
			attentive + "agi saliency grad-cam guided-backprop deeplift rap clrp crap lrp-z-plus left-ig",
			"Hardmax"},
		{"one output", altered(t, "smallcnn", summed), "auto", attentive,
			"no attention of tokens to tokens"},
		{"a Sigmoid at the end", altered(t, "smallcnn", multilabel), "auto", attentive, ""},
	} {
		p := model.ONNX.NewParams().(*model.ONNXParams)
		p.Path, p.Kind = tt.path, tt.kind
		trial, err := model.NewTrial(t.Context(), *p)
		if err != nil {
			t.Fatal(err)
		}
		net := modeltest.Model(t, *p)
		h, w := trial.Spec.Height, trial.Spec.Width
		pixels := make([]uint8, 3*h*w)
		for k := range pixels {
			pixels[k] = uint8(k * 37 % 251)
		}
		in := map[string][]stages.Data{
			"model":   {net},
			"images":  {stagetest.Items(nil, stages.NewTensor(pixels, 3, h, w).Encode())},
			"targets": {stagetest.Items(nil, stages.NewTensor([]int64{0}, 1).Encode())},
		}
		said := ""
		for name, s := range methods {
			params := s.NewParams()
			has := func(port string) bool { return in[port] != nil }
			tried := trial.Unfit(t.Context(), s, params, has, nil)
			wired := map[string][]stages.Data{}
			for port, d := range in {
				if s.Input(port) != nil {
					wired[port] = d
				}
			}
			_, ran := stagetest.Try(*s, params, wired)
			if (tried == nil) != (ran == nil) || tried != nil && tried.Error() != ran.Error() {
				t.Errorf("%s: %s: tried %v, run %v", tt.name, name, tried, ran)
			}
			if refused := strings.Contains(" "+tt.refused+" ", " "+name+" "); refused != (tried != nil) {
				t.Errorf("%s: %s: %v, want an error: %t", tt.name, name, tried, refused)
			}
			if tried != nil {
				said += tried.Error() + "\n"
			}
		}
		if !strings.Contains(said, tt.want) {
			t.Errorf("%s: nobody says %q:\n%s", tt.name, tt.want, said)
		}
		if err := trial.Close(); err != nil {
			t.Error(err)
		}
	}
}
