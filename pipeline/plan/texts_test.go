package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
)

// textsCatalog has a data set of texts, and a method that takes them in the place of images.
func textsCatalog() fakeCatalog {
	c := paperCatalog()
	fake(c, "dataset/lines", stages.Each, "", "tokens, labels", noParams{})
	fake(c, "attribute/reader", stages.Each, "images, model, baselines:images?", "maps", noParams{},
		func(d *stages.Def[noParams]) { d.Inputs[0].Texts, d.Inputs[2].Texts = true, true })
	return c
}

const textsText = `name: x
stages:
  lines: {uses: dataset/lines}
  model: {uses: model/onnx, with: {path: a.onnx}}
`

func TestTextsAreWiredAsImages(t *testing.T) {
	const want = " | images lines.tokens | model model.model\n"
	for _, in := range []string{"texts: lines", "images: lines", "texts: lines.tokens"} {
		p := mustParse(t, textsCatalog(), textsText+"  maps: {uses: attribute/reader, in: {model: model, "+in+
			"}}\npublish: [maps]\n", Overrides{})
		checkPlan(t, p)
		if d := cmp.Diff(want, stepText(t, p, "maps")); d != "" {
			t.Errorf("%s: −want +got\n%s", in, d)
		}
	}
}

func TestTextsWhereImagesAre(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"uses: attribute/reader, in: {model: model, texts: lines, images: lines}", "are one input of"},
		{"uses: mosaic/grid, in: {images: lines}", "has no output of the type images"},
		{"uses: mosaic/grid, in: {texts: lines}", `has no input "texts"`},
		{"uses: attribute/reader, in: {model: model, textss: lines}", `did you mean "texts"?`},
		{"uses: attribute/reader, in: {model: model, texts: lines.labels}", "takes images or tokens"},
		{"uses: attribute/reader, in: {model: model}", "it takes images or tokens"},
	} {
		ds := diagsOf(t, textsCatalog(), textsText+"  maps: {"+c.in+"}\npublish: [maps]\n", Overrides{})
		if text := ds.Error(); !strings.Contains(text, c.want) {
			t.Errorf("%s: no %q in\n%s", c.in, c.want, text)
		}
	}
}

// to them.
func TestTextsInAFigureOfImages(t *testing.T) {
	c := paperCatalog()
	fake(c, "dataset/tokens", stages.Each, "", "tokens, words", noParams{})
	fake(c, "attribute/words", stages.Each, "tokens", "maps", noParams{})
	fake(c, "report/text", stages.Whole, "maps, words", "figure", axisParams{})
	const text = "name: x\nstages:\n  reviews: {uses: dataset/tokens}\n" +
		"  maps: {uses: attribute/words, in: {tokens: reviews}}\n"
	for _, wired := range []string{"reviews", "reviews.tokens"} {
		ds := diagsOf(t, c, text+"  sheet: {uses: report/sheet, in: {maps: maps, images: "+wired+"}}\n"+
			"publish: [sheet]\n", Overrides{})
		if len(ds) != 1 || !strings.Contains(ds[0].Msg+ds[0].Hint, "report/text takes texts") {
			t.Errorf("%s: got %v", wired, ds)
		}
	}
	for _, wired := range []string{"texts: reviews", "words: reviews"} {
		ds := diagsOf(t, c, text+"  sheet: {uses: report/sheet, in: {maps: maps, "+wired+"}}\n"+
			"publish: [sheet]\n", Overrides{})
		if !strings.Contains(ds.Error(), "report/text takes texts") {
			t.Errorf("%s: got %v", wired, ds)
		}
	}
	mustParse(t, c, text+"  text: {uses: report/text, in: {maps: maps, words: reviews}}\npublish: [text]\n",
		Overrides{})
	ds := diagsOf(t, c, text+"  curves: {uses: report/curves, in: {curves: reviews}}\npublish: [curves]\n",
		Overrides{})
	if len(ds) != 1 || strings.Contains(ds[0].Hint, "takes texts") {
		t.Errorf("got %v", ds)
	}
}

// TestTextsOfImpliedStages checks that a stage inserted for maps gets the texts on its consumer's input, but
// no images, and that Check learns whether images are texts.
func TestTextsOfImpliedStages(t *testing.T) {
	c := textsCatalog()
	fake(c, "maps/rank", stages.Each, "maps, texts:tokens?", "ranks", rankParams{"magnitude"})
	seen := map[bool]bool{}
	fake(c, "perturb/remover", stages.Each, "images, ranked", "curves", noParams{},
		func(d *stages.Def[noParams]) {
			d.Inputs[0].Texts = true
			d.Check = func(_ noParams, wired func(string) bool) error {
				seen[wired(stages.TextsName)] = true
				return nil
			}
		})
	fake(c, "dataset/pictures", stages.Each, "", "images, maps", noParams{})
	p := mustParse(t, c, textsText+`  maps: {uses: attribute/reader, in: {model: model, texts: lines}}
  curves: {uses: perturb/remover, in: {texts: lines, maps: maps}}
publish: [curves]
`, Overrides{})
	checkPlan(t, p)
	text := stepText(t, p, "ranks~maps~lines")
	if !strings.Contains(text, "texts lines.tokens") || !seen[true] || seen[false] {
		t.Errorf("the implied stage reads %q; texts seen: %v", text, seen)
	}
	p = mustParse(t, c, `name: x
stages:
  pictures: {uses: dataset/pictures}
  curves: {uses: perturb/remover, in: {images: pictures, maps: pictures}}
publish: [curves]
`, Overrides{})
	if text = stepText(t, p, "ranks~pictures"); strings.Contains(text, "texts") || !seen[false] {
		t.Errorf("the implied stage of images reads %q; texts seen: %v", text, seen)
	}
}
