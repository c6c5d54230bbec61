package registry

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestMethods holds that all methods are told of, which fit a model and which don't.
func TestMethods(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	// "" is a method that fits, "~…" one that fits with a note.
	for net, wants := range map[string]map[string]string{
		"vgg": {
			"constant": "", "occlusion": "", "saliency": "", "guided-backprop": "", "grad-cam": "",
			"deeplift": "", "lrp-epsilon": "",
			"raw-attention": "no attention", "attention-rollout": "no attention",
			"transition-attention": "no attention", "tibav": "no attention",
		},
		"vit": {
			"saliency": "", "grad-cam": "", "raw-attention": "", "tibav": "", "rap": "",
			"guided-backprop": "~plain gradient",
			"deconvolution":   "~plain gradient", "guided-grad-cam": "~guided part", "lrp-composite": "",
			"clrp": "",
		},
	} {
		x, err := Inspect(t.Context(), "../experiments/quickstart/"+net+".onnx", Look{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]Fit{}
		for _, f := range x.Methods {
			got[f.Method] = f
		}
		for _, s := range Builtin().Family("attribute") {
			if _, told := got[s.Name]; told != (s.Output("maps") != nil) {
				t.Errorf("%s: %s is told of: %t", net, s.Name, told)
			}
		}
		for method, want := range wants {
			f := got["attribute/"+method]
			note, noted := strings.CutPrefix(want, "~")
			if f.Fits != (want == "" || noted) || !strings.Contains(f.Why, note) ||
				want == "" && f.Why != "" {
				t.Errorf("%s: %s: %+v, want %q", net, method, f, want)
			}
		}
	}
}

func TestStanzaAt(t *testing.T) {
	var x Inspection
	x.Feed.Height, x.Feed.Width, x.Feed.Layout = 32, 32, "nchw"
	if d := cmp.Diff("model:\n  uses: model/onnx\n  with:\n    path: 'it''s.onnx'\n    preset: imagenet\n",
		x.StanzaAt(Look{}, "it's.onnx")); d != "" {
		t.Error(d)
	}
	x.OpenSize, x.Leading, x.Feed.Layout = true, []string{"Sub"}, "nhwc"
	want := "model:\n  uses: model/onnx\n  with:\n    path: 'a.onnx'\n    preset: raw\n    layout: nhwc\n" +
		"    size: 32\n    input: 'x'\n    output: 'y: z'\n"
	if d := cmp.Diff(want, x.StanzaAt(Look{Input: "x", Output: "y: z"}, "a.onnx")); d != "" {
		t.Error(d)
	}
}

// TestUsesOnWebGPU holds that every stage that is tried on a device is measured there, and that WebGPU
// computes all nodes of a plain net.
func TestUsesOnWebGPU(t *testing.T) {
	if os.Getenv("RUNEXP_WEBGPU") != "all" {
		t.Skip("takes long: set RUNEXP_WEBGPU=all where there is an adapter of WebGPU")
	}
	x, err := Inspect(t.Context(), stagetest.Shared(t, "golden", "models", "smallcnn.onnx"), Look{},
		stages.Device{Class: "webgpu"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range x.Uses {
		if u.Problem != "" {
			t.Errorf("%s: %s", u.Stage, u.Problem)
		}
		for _, p := range u.Programs {
			got = append(got, u.Stage+": "+p.Name())
			if p.Device != "webgpu:0" || p.Nodes == 0 || len(p.Fallbacks) > 0 || p.ToHost.Number > 0 {
				t.Errorf("%s: %+v", u.Stage, p)
			}
		}
	}
	want := []string{"model/predict: forward", "attribute/saliency: gradient",
		"attribute/lrp-epsilon: gradient", "attribute/rise: masked", "perturb/deletion: curve"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
