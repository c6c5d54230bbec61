package registry

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestInspectWithoutClasses holds that a detector's output is found, that rewrites which need no classes fit
// it, and that it gets lines for an experiment.
func TestInspectWithoutClasses(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	x, err := Inspect(t.Context(), "testdata/detector.onnx", Look{})
	if err != nil {
		t.Fatal(err)
	}
	if x.Problem != "" || x.NoClassifier || len(x.Feed.Outputs) != 1 || x.Feed.Classes != 0 ||
		!strings.HasSuffix(x.Feed.Outputs[0].String(), "[5 4]") || x.Stanza == "" || x.Gradient != "" {
		t.Errorf("%q, outputs %v, %q, gradient %q", x.Problem, x.Feed.Outputs, x.Stanza, x.Gradient)
	}
	for _, f := range x.Rewrites {
		needs := f.Method != "model/randomise" && f.Method != "model/shift"
		if f.Fits == needs || needs && !strings.HasPrefix(f.Why, "the model has no classes") {
			t.Errorf("%s fits: %v, %s", f.Method, f.Fits, f.Why)
		}
	}
}

// TestInspectTexts holds that a model of texts is described by what its inputs take, and gets the methods
// that take texts and lines for an experiment.
func TestInspectTexts(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	x, err := Inspect(t.Context(), "../experiments/text/reviews.onnx", Look{})
	if err != nil {
		t.Fatal(err)
	}
	switch text := x.Texts; {
	case text == nil || x.Problem != "":
		t.Fatalf("it takes no texts: %s", x.Problem)
	case len(text.Inputs) != 3 || text.Longest != 128 || text.Vocabulary != 6000 || text.Dimension != 64 ||
		!text.Padded || text.Fixed || text.Embedding == "" || x.Gradient != "":
		t.Errorf("%+v, %q", text, x.Gradient)
	}
	for _, f := range x.Methods {
		want := map[string]bool{"attribute/saliency": true,
			"attribute/deeplift": true, "attribute/rise": false,
			"attribute/xrai": false, "attribute/raw-attention": true}
		if fits, listed := want[f.Method]; listed && f.Fits != fits {
			t.Errorf("%s fits: %v, %s", f.Method, f.Fits, f.Why)
		}
		write := map[string]string{"attribute/deeplift": "with baseline: mask or baseline: pad",
			"attribute/partition-shap": "with substrate: mask or substrate: pad",
			"attribute/kernel-shap":    "with substrate: mask, unit: pixel",
			"attribute/lime":           "with substrate: mask, unit: pixel", "attribute/saliency": "",
			"attribute/lrp-composite": "with preset: epsilon-plus", "attribute/lrp-epsilon": ""}
		if want, listed := write[f.Method]; listed && (!f.Fits || f.Why != want || f.Hides != (want != "")) {
			t.Errorf("%s: %+v, want %q", f.Method, f, want)
		}
	}
	if want := "model:\n  uses: model/onnx\n  with:\n    path: " +
		"'../experiments/text/reviews.onnx'\n"; x.Stanza != want {
		t.Errorf("%s", x.Stanza)
	}
}
