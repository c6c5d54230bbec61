package plan

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// A parameter of the value declared takes what the stage on its input declares, through stages that keep it;
// where nothing is declared, the parameter is refused with a hint.
func TestDeclaredParameters(t *testing.T) {
	type params struct {
		Map string `yaml:"map" declared:"maps" choices:"declared|gradient|contribution" doc:"map"`
	}
	c := paperCatalog()
	declares := func(values stages.Declared) func(*stages.Def[attrParams]) {
		return func(d *stages.Def[attrParams]) {
			d.Declares = func(p attrParams, in map[string]stages.Declared) stages.Declared {
				if _, wired := in["images"]; !wired || p.Reduce != "sum" {
					return nil
				}
				return values
			}
		}
	}
	fake(c, "attribute/g", stages.Each, "images", "maps", attrParams{Reduce: "sum"},
		declares(stages.Declared{"map": "gradient"}))
	fake(c, "attribute/c", stages.Each, "images", "maps", attrParams{Reduce: "sum"},
		declares(stages.Declared{"map": "contribution"}))
	fake(c, "attribute/other", stages.Each, "images", "maps", attrParams{Reduce: "sum"},
		declares(stages.Declared{"map": "other"}))
	fake(c, "attribute/none", stages.Each, "images", "maps", noParams{})
	fake(c, "maps/keep", stages.Each, "maps", "maps", noParams{}, func(d *stages.Def[noParams]) {
		d.Declares = func(_ noParams, in map[string]stages.Declared) stages.Declared { return in["maps"] }
	})
	fake(c, "maps/mean", stages.Each, "maps*", "maps", noParams{}, func(d *stages.Def[noParams]) {
		d.Declares = func(_ noParams, in map[string]stages.Declared) stages.Declared { return in["maps"] }
	})
	signed := func(p attrParams, in map[string]stages.Declared) stages.Declared {
		if p.Reduce == "abs-sum" {
			return nil
		}
		return in["maps"]
	}
	fake(c, "maps/signed", stages.Each, "maps", "maps", attrParams{Reduce: "sum"},
		func(d *stages.Def[attrParams]) { d.Declares = signed })
	fake(c, "maps/end", stages.Each, "maps", "maps", noParams{})
	fake(c, "score/map", stages.Each, "maps", "scores", params{"declared"})
	fake(c, "score/maps", stages.Each, "maps*", "scores", params{"declared"})

	const text = `title: declared
name: declared
axes:
  method:
    a: {uses: attribute/A}
    b: {uses: attribute/B, with: {WITH}}
stages:
  data: {uses: dataset/folder, with: {path: x}}
  maps: {uses: "${method}", matrix: [method], in: {images: data}}
  kept: {uses: maps/KEEP, in: {maps: maps}}
  score: {uses: score/SCORE, in: {maps: kept}, with: {SET}}
publish: [score]
`
	const hint = "if you know it, write map: gradient or contribution, or leave such cells out with exclude"
	for _, tc := range []struct {
		a, b, with, keep, score, set string
		want, err, hint              string // want has the values of the cells
	}{
		{a: "g", b: "c", keep: "keep", score: "map", want: "gradient contribution"},
		{a: "g", b: "none", keep: "end", score: "map", set: "map: gradient", want: "gradient gradient"},
		{a: "g", b: "g", keep: "keep", score: "maps, over: [method]", want: "gradient"},
		{a: "g", b: "c", keep: "keep", score: "maps, over: [method]",
			err:  `11:17: stages.score.uses: map: map is "gradient" for kept[method=a] and "contribution"`,
			hint: hint},
		{a: "g", b: "g", keep: "mean, over: [method]", score: "map", want: "gradient"},
		{a: "g", b: "c", keep: "mean, over: [method]", score: "map",
			err:  "11:17: stages.score.uses: map: map is what its method declares, and maps/mean with these",
			hint: hint},
		{a: "g", b: "c", keep: "end", score: "map",
			err:  "11:17: stages.score.uses: map: map is what its method declares, and maps/end with these",
			hint: hint},
		{a: "g", b: "c", with: "reduce: abs-sum", keep: "keep", score: "map", set: "map: declared",
			err:  "11:58: stages.score.with.map: map is what its method declares, and maps/keep with",
			hint: hint},
		{a: "g", b: "g", keep: "signed, with: {reduce: abs-sum}", score: "map",
			err: "11:17: stages.score.uses: map: map is what its method declares, and maps/signed with " +
				"these",
			hint: "with reduce: sum it declares gradient; " + hint},
		{a: "g", b: "other", keep: "keep", score: "map",
			err:  `11:17: stages.score.uses: map: map is to be what maps/keep declares, and "other" is none`,
			hint: hint},
	} {
		text := strings.NewReplacer("/A", "/"+tc.a, "/B", "/"+tc.b, "WITH", tc.with, "KEEP", tc.keep,
			"SCORE", tc.score, "SET", tc.set).Replace(text)
		p, err := Parse("x.yaml", []byte(text), "", c, Overrides{})
		if tc.err != "" {
			ds, _ := err.(Diags)
			if len(ds) != 1 || !strings.HasPrefix(ds[0].String(), "x.yaml:"+tc.err) || ds[0].Hint != tc.hint {
				t.Errorf("%s, %s: got %v, want %s", tc.a, tc.b, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s, %s: %v", tc.a, tc.b, err)
			continue
		}
		var got []string
		for _, cell := range p.Publish[0].Cells {
			got = append(got, cell.Params.(*params).Map)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s, %s: got %v, want %s", tc.a, tc.b, got, tc.want)
		}
	}
}
