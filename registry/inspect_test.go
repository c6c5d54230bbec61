package registry

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages/model"
)

func TestFits(t *testing.T) {
	final := &model.Value{Name: "relu", Shape: []string{"N", "8", "4", "4"}}
	const unknown = "no gradient is known for CumSum"
	one := model.Inspection{Rectifiers: 3, Final: final}
	one.Feed.Classes = 1
	for _, tt := range []struct {
		name  string
		x     model.Inspection
		wants map[string]string // "" for a method that fits, "~…" for one that fits with a note
	}{
		{"all", model.Inspection{Rectifiers: 3, Final: final}, map[string]string{
			"constant": "", "occlusion": "", "saliency": "", "guided-backprop": "", "grad-cam": "", "guided-grad-cam": "",
		}},
		{"no gradient", model.Inspection{Rectifiers: 3, Final: final, Gradient: unknown}, map[string]string{
			"constant": "", "occlusion": "", "rise": "", "saliency": unknown, "guided-backprop": unknown, "grad-cam": unknown, "smoothgrad": unknown,
		}},
		{"no places", model.Inspection{Rectifiers: 3}, map[string]string{
			"saliency": "", "guided-backprop": "", "grad-cam": "name a layer", "guided-grad-cam": "name a layer",
		}},
		{"no rectifiers", model.Inspection{Final: final}, map[string]string{
			"saliency": "", "grad-cam": "", "guided-backprop": "~plain gradient", "deconvolution": "~plain gradient", "guided-grad-cam": "~guided part",
		}},
		{"no attention", model.Inspection{Rectifiers: 3, Final: final, Attention: "within windows"}, map[string]string{
			"saliency": "", "raw-attention": "within windows", "attention-rollout": "within windows", "transition-attention": "within windows", "tibav": "within windows",
		}},
		{"no rules", model.Inspection{Rectifiers: 3, Final: final, Rules: map[string]string{"rescale": "a LRN", "tibav": "a Conv"}}, map[string]string{
			"saliency": "", "deeplift": "a LRN", "tibav": "a Conv", "transition-attention": "", "raw-attention": "",
		}},
		{"one class", one, map[string]string{
			"saliency": "", "lrp-z-plus": "", "rap": "", "clrp": "one class", "crap": "one class",
		}},
		{"neither gradient nor attention", model.Inspection{Gradient: unknown, Attention: "none"}, map[string]string{
			"raw-attention": "none", "tibav": unknown, "deeplift": unknown,
		}},
	} {
		got := map[string]Fit{}
		for _, f := range fits(tt.x) {
			got[f.Method] = f
		}
		for _, s := range Builtin().Family("attribute") {
			if _, told := got[s.Name]; told != (s.Output("maps") != nil) {
				t.Errorf("%s: %s is told of: %t", tt.name, s.Name, told)
			}
		}
		for method, want := range tt.wants {
			f := got["attribute/"+method]
			note, noted := strings.CutPrefix(want, "~")
			if f.Fits != (want == "" || noted) || !strings.Contains(f.Why, note) || want == "" && f.Why != "" {
				t.Errorf("%s: %s: %+v, want %q", tt.name, method, f, want)
			}
		}
	}
}

func TestStanzaAt(t *testing.T) {
	var x Inspection
	x.Feed.Height, x.Feed.Layout = 32, "nchw"
	if d := cmp.Diff("net:\n  uses: model/onnx\n  with:\n    path: 'it''s.onnx'\n    preset: imagenet\n", x.StanzaAt(Look{}, "net", "it's.onnx")); d != "" {
		t.Error(d)
	}
	x.OpenSize, x.Leading, x.Feed.Layout = true, []string{"Sub"}, "nhwc"
	want := "net:\n  uses: model/onnx\n  with:\n    path: 'a.onnx'\n    preset: raw\n    layout: nhwc\n    size: 32\n    input: 'x'\n    output: 'y: z'\n"
	if d := cmp.Diff(want, x.StanzaAt(Look{Input: "x", Output: "y: z"}, "net", "a.onnx")); d != "" {
		t.Error(d)
	}
}
