package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
)

// besideCatalog has a method that reads the items and the scores of another stage, which is implied if it
// isn't wired, and reads the same images as the method.
func besideCatalog() fakeCatalog {
	c := paperCatalog()
	fake(c, "perturb/derived", stages.Each, "model, images", "images", noParams{})
	fake(c, "perturb/drawn", stages.Each, "model, images, targets?", "masks, scores", stepParams{Step: 3})
	fake(c, "perturb/bare", stages.Each, "model, images", "masks", stepParams{Step: 3})
	fake(c, "attribute/solver", stages.Each, "images, model, targets?, drawn:masks?, answers:scores?", "maps",
		stepParams{Step: 5}, func(d *stages.Def[stepParams]) {
			d.Inputs[3].Else, d.Inputs[3].Own = "perturb/drawn", true
			d.Inputs[4].Beside = "drawn"
		})
	return c
}

const besideText = `name: x
stages:
  photos: {uses: dataset/shapes}
  model: {uses: model/onnx, with: {path: a.onnx}}
  steps: {uses: perturb/derived, in: {model: model, images: photos}}
  drawn: {uses: perturb/drawn, in: {model: model, images: steps}, with: {step: 4}}
  bare: {uses: perturb/bare, in: {model: model, images: steps}}
`

func TestBeside(t *testing.T) {
	text := besideText + `  implied: {uses: attribute/solver, in: {model: model, images: steps}}
  wired: {uses: attribute/solver, in: {model: model, images: steps, drawn: drawn}}
publish: [implied, wired]
`
	p := mustParse(t, besideCatalog(), text, Overrides{})
	checkPlan(t, p)
	const implied = "masks~model~steps~targets~step=5"
	for step, want := range map[string]string{
		implied: " | model model.model | images steps.images | targets targets~model~photos.targets\n",
		"implied": " | images steps.images | model model.model | targets targets~model~photos.targets | " +
			"drawn " + implied + ".masks | answers " + implied + ".scores\n",
		"wired": " | images steps.images | model model.model | targets targets~model~photos.targets | " +
			"drawn drawn.masks | answers drawn.scores\n",
	} {
		if d := cmp.Diff(want, stepText(t, p, step)); d != "" {
			t.Errorf("%s −want +got\n%s", step, d)
		}
	}
}

func TestBesideLacksAnOutput(t *testing.T) {
	ds := diagsOf(t, besideCatalog(), besideText+
		"  wired: {uses: attribute/solver, in: {model: model, images: steps, drawn: bare}}\n"+
		"publish: [wired]\n",
		Overrides{})
	if len(ds) != 1 || ds[0].Line != 8 || !strings.Contains(ds[0].Msg,
		`the input "answers" of attribute/solver isn't connected, and bare, which feeds "drawn", `+
			`has no output of the type scores`) {
		t.Errorf("got %v", ds)
	}
}

// An output of another type is reported once, and not for each input that it feeds, too.
func TestBesideOfAnotherType(t *testing.T) {
	ds := diagsOf(t, besideCatalog(), besideText+
		"  wired: {uses: attribute/solver, in: {model: model, images: steps, drawn: steps}}\n"+
		"publish: [wired]\n", Overrides{})
	if len(ds) != 1 || !strings.Contains(ds[0].Msg, "has no output of the type masks") {
		t.Errorf("got %v", ds)
	}
}
