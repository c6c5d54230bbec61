package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
)

type (
	preciseParams struct {
		Precision string `yaml:"precision" doc:"arithmetic" choices:"float32|bfloat16"`
	}
	boardParams struct {
		Exact string `yaml:"exact" doc:"precision"`
		Pilot int    `yaml:"pilot" doc:"how many"`
		Among string `yaml:"among" doc:"axis"`
	}
	sizeParams struct {
		Rank string `yaml:"rank" doc:"axis"`
	}
	pilotParams struct {
		Pilot int `yaml:"pilot" doc:"how many"`
	}
)

// againCatalog has a report whose scores are computed again.
func againCatalog() fakeCatalog {
	c := paperCatalog()
	fake(c, "perturb/cheap", stages.Each, "model, images, ranked", "curves", preciseParams{"float32"})
	fake(c, "score/area", stages.Each, "curves", "scores", noParams{})
	fake(c, "score/both", stages.Each, "maps, curves", "scores", noParams{})
	fake(c, "score/all", stages.Whole, "curves", "scores", noParams{})
	fake(c, "dataset/draw", stages.Whole, "images?, maps?, size:table?", "images, maps", pilotParams{8})
	fake(c, "dataset/size", stages.Whole, "scores, pilot:scores", "table", sizeParams{})
	fake(c, "report/board", stages.Whole, "scores, pilot:scores?, exact:scores?", "table",
		boardParams{Pilot: 32}, func(d *stages.Def[boardParams]) {
			again := stages.Again{Of: "scores", Param: "precision", As: "exact", Draw: "dataset/draw",
				Takes: map[string]string{"rank": "among"}}
			pilot, exact := again, again
			pilot.Count, exact.Size, exact.After = "pilot", "dataset/size", "pilot"
			d.Inputs[1].Again, d.Inputs[2].Again = &pilot, &exact
		})
	return c
}

const againText = `name: x
axes:
  method: [ig, rise]
stages:
  photos: {uses: dataset/shapes}
  model: {uses: model/onnx, with: {path: a.onnx}}
  maps:
    uses: attribute/saliency
    matrix: [method]
    in: {model: model, images: photos}
    with: {target: "${method}"}
  curve: {uses: perturb/cheap, in: {model: model, images: photos, maps: maps}, with: {precision: PRECISION}}
  area: {uses: SCORE, in: {curves: curveMAPS}}
  board: {uses: report/board, in: {scores: area}, over: [method], with: {exact: EXACT, among: method}}
publish: [board]
`

func againOf(precision, score, maps, exact string) string {
	r := strings.NewReplacer("PRECISION", precision, "SCORE", score, "MAPS", maps, "EXACT", exact)
	return r.Replace(againText)
}

// A report that asks for it gets copies of the cells between the images and the scores, for drawn images: a
// pilot, and a second phase of the size that a stage makes of the pilot.
func TestAgain(t *testing.T) {
	p := mustParse(t, againCatalog(), againOf("bfloat16", "score/area", "", "float32"), Overrides{})
	checkPlan(t, p)
	for step, want := range map[string]string{
		"board": " | scores (method=ig)area[method=ig].scores (method=rise)area[method=rise].scores" +
			" | pilot (method=ig)area~float32~pilot[method=ig].scores" +
			" (method=rise)area~float32~pilot[method=rise].scores" +
			" | exact (method=ig)area~float32~exact[method=ig].scores" +
			" (method=rise)area~float32~exact[method=rise].scores\n",
		"curve~float32~pilot": "method=ig | model model.model | images images~photos~pilot=32.images" +
			" | maps ranks~maps[method=ig].ranked\n" +
			"method=rise | model model.model | images images~photos~pilot=32.images" +
			" | maps ranks~maps[method=rise].ranked\n",
		"images~photos~table~pilot=32": " | images photos.images | size table~area~area~rank=method.table\n",
		"table~area~area~rank=method": " | scores (method=ig)area[method=ig].scores" +
			" (method=rise)area[method=rise].scores" +
			" | pilot (method=ig)area~float32~pilot[method=ig].scores" +
			" (method=rise)area~float32~pilot[method=rise].scores\n",
	} {
		if d := cmp.Diff(want, strings.ReplaceAll(stepText(t, p, step), ".ranks", ".ranked")); d != "" {
			t.Errorf("%s −want +got\n%s", step, d)
		}
	}
	for step, want := range map[string]string{"curve": "bfloat16", "curve~float32~pilot": "float32",
		"curve~float32~exact": "float32"} {
		for _, c := range p.stepCalled(t, step).Cells {
			if got := c.Params.(*preciseParams).Precision; got != want {
				t.Errorf("%s has the precision %s, want %s", c, got, want)
			}
		}
	}
	if len(p.Again) != 2 || p.Again[0].Count != 32 || p.Again[1].Count != 0 || len(p.Again[0].Of) != 4 {
		t.Errorf("the copies are noted as %+v", p.Again)
	}
}

// A score whose items another input decides about is restricted, too.
func TestAgainRestricts(t *testing.T) {
	text := againOf("bfloat16", "score/both", ", maps: maps", "float32")
	p := mustParse(t, againCatalog(), text, Overrides{})
	checkPlan(t, p)
	text = stepText(t, p, "area~float32~pilot")
	const want = "maps maps~maps~pilot=32[method=ig].maps | curves curve~float32~pilot[method=ig]"
	if !strings.Contains(text, want) {
		t.Errorf("got\n%s", text)
	}
}

func TestAgainIsOptional(t *testing.T) {
	c := againCatalog()
	with := mustParse(t, c, againOf("bfloat16", "score/area", "", `""`), Overrides{})
	for _, s := range with.Steps {
		if strings.Contains(s.Name, "float32") {
			t.Errorf("there is a step %s", s.Name)
		}
	}
}

func TestAgainRefuses(t *testing.T) {
	misspelt := againOf("bf16", "score/area", "", "float32")
	if ds := diagsOf(t, againCatalog(), misspelt, Overrides{}); len(ds) != 1 || ds[0].Line != 12 {
		t.Errorf("of a misspelt precision there are the errors %v", ds)
	}
	for _, tc := range []struct{ text, want string }{
		{againOf("float32", "score/area", "", "float32"),
			"no scores of board are computed with another precision than float32"},
		{againOf("bfloat16", "score/all", "", "float32"), "area, score/all, depends on all items at once"},
	} {
		ds := diagsOf(t, againCatalog(), tc.text, Overrides{})
		if len(ds) != 1 || ds[0].Line != 14 || !strings.Contains(ds[0].Msg, tc.want) {
			t.Errorf("got %v, want %q", ds, tc.want)
		}
	}
}
