package plan

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// A translated is a catalog of names alone, with one of another library.
type translated []string

func (translated) Lookup(string) (*stages.Stage, bool) { return nil, false }
func (c translated) Names() []string                   { return c }

func (translated) Elsewhere(name string) string {
	if name == "PixelFlipping" || name == "KernelShap" {
		return "theirs"
	}
	return ""
}

func TestSuggestStage(t *testing.T) {
	known := []string{"attribute/crap", "attribute/kernel-shap", "attribute/partition-shap", "attribute/rise",
		"attribute/rise-again", "attribute/lrp-a", "attribute/lrp-b", "attribute/lrp-c", "attribute/lrp-d",
		"score/rise"}
	for name, want := range map[string]string{
		"attribute/shap":        `did you mean "attribute/kernel-shap" or "attribute/partition-shap"?`,
		"shap":                  `did you mean "attribute/kernel-shap" or "attribute/partition-shap"?`,
		"rise":                  `did you mean "attribute/rise" or "score/rise"?`,
		"attribute/kernel-shop": `did you mean "attribute/kernel-shap"?`,
		"kernelshap":            `did you mean "attribute/kernel-shap"?`,
		"KernelShap":            `did you mean "attribute/kernel-shap"?`,
		"score/kernel-shap":     `did you mean "attribute/kernel-shap"?`,
		"PixelFlipping":         "theirs",
		"score/PixelFlipping":   "theirs",
		"attribute/lrp-e":       `did you mean "attribute/lrp-a"?`,
	} {
		if got := SuggestStage(name, translated(known)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// A choice's in would be one of its fields, which nothing reads; an id without uses may have one.
func TestChoicesWireNoInputs(t *testing.T) {
	const text = `title: wired
name: wired
axes:
  place: {left: {in: {x: 1}}}
  method:
    a: {uses: attribute/saliency, in: {images: images}}
stages:
  images: {uses: dataset/folder, with: {path: x}}
  model: {uses: model/onnx, with: {path: x}}
  maps: {uses: "${method}", matrix: [method, place], in: {model: model, images: images}}
publish: [maps]
`
	ds := diagsOf(t, paperCatalog(), text, Overrides{})
	if len(ds) != 1 || ds[0].Line != 6 || !strings.Contains(ds[0].Msg, "a choice can't wire inputs") {
		t.Errorf("got %v", ds)
	}
}

// Where no stage of the experiment has what an input takes, the hint names those that would.
func TestUnconnectedNamesMakers(t *testing.T) {
	c := paperCatalog()
	fake(c, "score/removed", stages.Each, "removals", "scores", noParams{})
	const text = "title: wired\nname: wired\nstages:\n  score: {uses: score/removed}\npublish: [score]\n"
	added := 0
	for _, makers := range []string{
		", which perturb/gradient-masking makes",
		", which perturb/a or perturb/gradient-masking makes",
		", which perturb/a or perturb/b or perturb/gradient-masking makes",
		"", // too many
	} {
		ds := diagsOf(t, c, text, Overrides{})
		if len(ds) != 1 || ds[0].Hint != "it takes removals"+makers {
			t.Errorf("got %v, want the hint %q", ds, makers)
		}
		fake(c, "perturb/"+string(rune('a'+added)), stages.Each, "images", "removals", noParams{})
		added++
	}
}
