package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// precisionCatalog has two stages of curves in several precisions, and one without.
func precisionCatalog() fakeCatalog {
	c := paperCatalog()
	for _, n := range []string{"perturb/fast", "perturb/faster"} {
		fake(c, n, stages.Each, "model, images, maps", "curves", stages.Precise{},
			func(d *stages.Def[stages.Precise]) { d.Device = true })
		c[n].Rounding = map[string]stages.Rounding{stages.BFloat16: {"probability": 0.1}}
	}
	fake(c, "perturb/plain", stages.Each, "model, images, maps", "curves", noParams{})
	fake(c, "score/area", stages.Each, "curves", "scores", noParams{})
	fake(c, "score/mass", stages.Each, "maps", "scores", noParams{})
	fake(c, "score/both", stages.Each, "maps, curves", "scores", noParams{})
	fake(c, "report/all", stages.Whole, "scores", "table", noParams{})
	return c
}

const precisionText = `name: x
axes:
  curve: {fast: {uses: perturb/fast}, faster: {uses: perturb/faster}, plain: {uses: perturb/plain}}
stages:
  photos: {uses: dataset/shapes}
  model: {uses: model/onnx, with: {path: a.onnx}}
  maps: {uses: attribute/saliency, in: {model: model, images: photos}}
  curve: {uses: "${curve}", matrix: [curve], in: {model: model, images: photos, maps: maps}}
  one: {uses: perturb/fast, in: {model: model, images: photos, maps: maps}}
publish: [curve, one]
`

// --precision sets the precision of all stages of curves that have one, also of those that an axis chooses.
// What --set says of one of them wins.
func TestPrecisionOfAll(t *testing.T) {
	for text, want := range map[string]string{
		precisionText: "curve[curve=fast] bfloat16, curve[curve=faster] bfloat16, one bfloat16",
		strings.NewReplacer("  one: {uses: perturb/fast, in:", "  one: {uses: perturb/plain, in:").
			Replace(precisionText): "curve[curve=fast] bfloat16, curve[curve=faster] bfloat16",
	} {
		p := mustParse(t, precisionCatalog(), text, Overrides{Precision: stages.BFloat16})
		var got []string
		for _, c := range p.Cells {
			if stages.HasPrecision(c.Params) {
				got = append(got, fmt.Sprint(c, " ", stages.PrecisionOf(c.Params)))
			}
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	p := mustParse(t, precisionCatalog(), precisionText,
		Overrides{Precision: stages.BFloat16, Set: []string{"one.with.precision=float32"}})
	if got := stages.PrecisionOf(p.stepCalled(t, "one").Cells[0].Params); got != stages.Float32 {
		t.Errorf("set to float32, it is %s", got)
	}
	none := strings.NewReplacer("perturb/faster", "perturb/plain", "perturb/fast", "perturb/plain")
	ds := diagsOf(t, precisionCatalog(), none.Replace(precisionText), Overrides{Precision: stages.BFloat16})
	if len(ds) != 1 || !strings.Contains(ds[0].Msg, "no stage of the experiment uses one of perturb/") {
		t.Errorf("without such a stage: %v", ds)
	}
}

// Curves in one precision and maps in another aren't mixed: a table may have scores of both, and of maps that
// no model made. Curves in two precisions are, and so are maps.
func TestMixedPrecisions(t *testing.T) {
	const text = `name: x
axes:
  method: {saliency: {uses: attribute/precise, with: {precision: MAPS}}, subsets: {uses: maps/of}, none: {uses: maps/none}}
  pass: {first: {precision: bfloat16}, second: {precision: PRECISION}}
stages:
  photos: {uses: dataset/shapes}
  model: {uses: model/onnx, with: {path: a.onnx}}
  whole: {uses: perturb/whole, matrix: [pass], in: {model: model, images: photos}, with: {precision: MAPS}}
  maps:
    uses: "${method}"
    matrix: [method, pass]
    in: {model: model, images: photos, curves: whole}
  curve:
    uses: perturb/fast
    in: {model: model, images: photos, maps: maps}
    with: {precision: "${pass.precision}"}
  area: {uses: score/area, in: {curves: curve}}
  both: {uses: score/both, in: {curves: curve, maps: maps}}
  masked: {uses: perturb/image, in: {model: model, images: photos, maps: maps}, with: {precision: bfloat16}}
  again: {uses: "${method}", matrix: [method, pass], in: {model: model, images: masked, curves: whole}}
  mass: {uses: score/mass, in: {maps: again}}
  all: {uses: report/all, in: {scores: {metric: {area: area, both: both, mass: mass}}}, over: all}
publish: [all]
`
	c := precisionCatalog()
	fake(c, "maps/none", stages.Each, "model?, images, curves?", "maps", noParams{})
	fake(c, "maps/of", stages.Each, "model?, images, curves", "maps", noParams{})
	device := func(d *stages.Def[stages.Precise]) { d.Device = true }
	fake(c, "attribute/precise", stages.Each, "model, images, curves?", "maps", stages.Precise{}, device)
	fake(c, "perturb/whole", stages.Each, "model, images", "curves", stages.Precise{}, device)
	fake(c, "perturb/image", stages.Each, "model, images, maps", "images", stages.Precise{}, device)
	for _, n := range []string{"attribute/precise", "perturb/whole", "perturb/image"} {
		c[n].Rounding = map[string]stages.Rounding{stages.BFloat16: {"probability": 0.1}}
	}
	for _, tt := range []struct {
		curves, maps string
		mixed        bool
	}{
		{"bfloat16", "float32", false},
		{"float32", "float32", true},
		{"bfloat16", `"${pass.precision}"`, false},
		{"float32", `"${pass.precision}"`, true},
	} {
		p := mustParse(t, c, strings.NewReplacer("PRECISION", tt.curves, "MAPS", tt.maps).Replace(text),
			Overrides{})
		const told = `"all" has results of bfloat16 and float32 in one table`
		if mixed := strings.Contains(fmt.Sprint(p.Warnings), told); mixed != tt.mixed {
			t.Errorf("%+v: %v", tt, p.Warnings)
		}
	}
}

// Titles say in which precision results were computed, unless an axis does, or they are estimates of
// float32's.
func TestPrecisionInWords(t *testing.T) {
	c := precisionCatalog()
	fake(c, "report/estimate", stages.Whole, "scores, exact:scores?", "table", noParams{},
		func(d *stages.Def[noParams]) { d.Inputs[1].Again = &stages.Again{Of: "scores"} })
	const text = `name: x
axes:
  precision: [float32, bfloat16]
stages:
  photos: {uses: dataset/shapes}
  model: {uses: model/onnx, with: {path: a.onnx}}
  maps: {uses: attribute/saliency, in: {model: model, images: photos}}
  fast: {uses: perturb/fast, in: {model: model, images: photos, maps: maps}, with: {precision: bfloat16}}
  slow: {uses: perturb/fast, in: {model: model, images: photos, maps: maps}}
  by:
    uses: perturb/fast
    matrix: [precision]
    in: {model: model, images: photos, maps: maps}
    with: {precision: "${precision}"}
  fast-area: {uses: score/area, in: {curves: fast}}
  slow-area: {uses: score/area, in: {curves: slow}}
  area: {uses: score/area, in: {curves: by}}
  mixed: {uses: report/all, in: {scores: {of: {fast: fast-area, slow: slow-area}}}, over: all}
  named: {uses: report/all, in: {scores: area}, over: all}
  estimate: {uses: report/estimate, in: {scores: fast-area, exact: slow-area}}
publish: [mixed, named, estimate]
`
	p, words := mustParse(t, c, text, Overrides{}), Precisions{}
	for step, want := range map[string]string{"maps": "", "fast-area": "passes in bfloat16", "slow-area": "",
		"mixed": "passes in bfloat16 and float32", "named": "", "area": "", "estimate": ""} {
		if got := words.Words(p.stepCalled(t, step).Cells[0]); got != want {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
}
