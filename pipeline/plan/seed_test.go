package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
)

// seedText has the maps of a stage that draws and of one that doesn't, with a seed of their own.
const seedText = `name: x
seed: 5
axes:
  method: {s: {uses: attribute/saliency}, r: {uses: attribute/random}}
  run: %s
stages:
  images: {uses: dataset/shapes}
  model: {uses: model/onnx, with: {path: a.onnx}}
  maps: {uses: "${method}", matrix: [method, run], in: {model: model, images: images}, seed: %s}
  other: {uses: attribute/random, in: {model: model, images: images}}
publish: [maps, other]
`

func TestStageSeed(t *testing.T) {
	for _, tc := range []struct{ axis, seed, want string }{
		{"[1, 2]", `"${run}"`, "s,1=0 s,2=0 r,1=1 r,2=2"},
		{"{a: {n: 18446744073709551615}, b: {n: 0}}", `"${run.n}"`,
			"s,a=0 s,b=0 r,a=18446744073709551615 r,b=0"},
		{"[a]", "9", "s,a=0 r,a=9"},
	} {
		p := mustParse(t, paperCatalog(), fmt.Sprintf(seedText, tc.axis, tc.seed), Overrides{})
		checkPlan(t, p)
		var got []string
		for _, c := range p.stepCalled(t, "maps").Cells {
			got = append(got, fmt.Sprintf("%s,%s=%d", c.Coord[0].ID, c.Coord[1].ID, c.Seed))
		}
		if d := cmp.Diff(tc.want, strings.Join(got, " ")); d != "" {
			t.Errorf("%s, %s: −want +got\n%s", tc.axis, tc.seed, d)
		}
		if got := p.stepCalled(t, "other").Cells[0].Seed; got != 5 {
			t.Errorf("a stage without a seed has %d, not the experiment's", got)
		}
	}
	set := mustParse(t, paperCatalog(), fmt.Sprintf(seedText, "[1]", `"${run}"`),
		Overrides{Set: []string{"maps.seed=11", "seed=6"}})
	mine, other := set.stepCalled(t, "maps").Cells[1].Seed, set.stepCalled(t, "other").Cells[0].Seed
	if mine != 11 || other != 6 {
		t.Errorf("with --set the seeds are %d and %d", mine, other)
	}
	if again := mustParse(t, paperCatalog(), string(set.Resolved()), Overrides{}); again.stepCalled(t,
		"maps").Cells[1].Seed != 11 {
		t.Error("the experiment as it ran has another seed")
	}
}

func TestBadSeeds(t *testing.T) {
	text := func(axis, seed string) string { return fmt.Sprintf(seedText, axis, seed) }
	for _, tc := range []struct{ name, text, want, hint string }{
		{"draws nothing",
			strings.Replace(text("[1]", "3"), "uses: attribute/random", "uses: attribute/saliency", 1),
			`x.yaml:9:94: stages.maps.seed: the stage "maps" draws no random numbers: attribute/saliency`,
			"leave seed out; it belongs to a stage that draws"},
		{"a text", text("[1]", "many"), `"many" is not a whole number from 0`, "or write a reference"},
		{"a part", text("[1]", `"1${run}"`), "a seed is a whole reference", "write ${axis}"},
		{"negative", text("[1]", "-1"), "-1 is not a whole number from 0", ""},
		{"unknown axis", text("[1]", `"${runs}"`), `no axis is called "runs"`, `did you mean "run"?`},
		{"an id that isn't a number", text("[one]", `"${run}"`),
			`x.yaml:5:9: axes.run[0]: "one" is not a whole number from 0 to 2⁶⁴ − 1 (used by`,
			"write run: [1, 2, 3]"},
		{"an id with fields", text("{1: {n: 3}}", `"${run}"`), "is not a whole number",
			"write ${run.seed}"},
		{"an axis that the stage lacks",
			strings.Replace(text("[1]", `"${run}"`), "[method, run]", "[method]", 1),
			`the stage "maps" has no axis "run"`, "matrix: [run]"},
	} {
		found := false
		for _, d := range diagsOf(t, paperCatalog(), tc.text, Overrides{}) {
			found = found || strings.Contains(d.String(), tc.want) && strings.Contains(d.Hint, tc.hint)
		}
		if !found {
			t.Errorf("%s: no %q, hint %q, but\n%v", tc.name, tc.want, tc.hint,
				diagsOf(t, paperCatalog(), tc.text, Overrides{}))
		}
	}
}

// TestReplicates holds which collapsed axes are replicates: those that seeds read, and nothing else.
func TestReplicates(t *testing.T) {
	text := func(maps, table string) string {
		return `name: x
axes:
  method: {s: {uses: attribute/saliency}, r: {uses: attribute/random` + maps + `}}
  run: {a: {n: 1}, b: {n: 2}}
stages:
  images: {uses: dataset/shapes}
  model: {uses: model/onnx, with: {path: a.onnx}}
  maps: {uses: "${method}", matrix: [method, run], in: {model: model, images: images}, seed: "${run.n}"}
  pic: {uses: score/fit, in: {model: model, images: images, maps: maps}}
  table: ` + table + `
publish: [table]
`
	}
	averages := pairCatalog()
	fake(averages, "maps/ranks", stages.Each, "maps:maps", "maps", noParams{})
	for _, name := range []string{"fuse/meta-rank", "report/table"} {
		s := *averages[name]
		s.Inputs = append([]stages.Port(nil), s.Inputs...)
		s.Inputs[0].Averages = true
		averages[name] = &s
	}
	type listed struct {
		Rows []string `yaml:"rows" axis:"values" doc:"axes"`
	}
	fake(averages, "report/listed", stages.Whole, "values:scores", "table", listed{},
		func(d *stages.Def[listed]) { d.Inputs[0].Averages = true })
	all := "{uses: report/table, in: {values: pic.sic}, over: all}"
	pair := func(in string) string {
		return "{uses: report/table, in: {values: pair}, over: all}\n" +
			"  pair: {uses: score/pair, in: {" + in + "}}\n" +
			"  same: {uses: \"${method}\", matrix: [method, run], in: {model: model, images: images}, " +
			"seed: \"${run.n}\"}\n  ranks: {uses: maps/ranks, in: {maps: maps}}\n" +
			"  first: {uses: maps/ranks, in: {maps: \"maps[run=a]\"}}"
	}
	for _, tc := range []struct{ name, text, want string }{
		{"all", text("", all), "run"},
		{"a rank needn't be named",
			text("", "{uses: fuse/meta-rank, in: {scores: pic.sic}, over: [run, method]}"), "run"},
		{"not collapsed", text("", "{uses: report/table, in: {values: pic.sic}, over: [method]}"), ""},
		{"named",
			text("", "{uses: report/listed, in: {values: pic.sic}, over: all, with: {rows: [run]}}"), ""},
		{"another is named",
			text("", "{uses: report/listed, in: {values: pic.sic}, over: all, with: {rows: [method]}}"),
			"run"},
		{"read by a choice", text(`, with: {distribution: "${run.d}"}`, all), ""},
		{"read by a stage",
			strings.Replace(text("", all), "a.onnx}", `"${run}.onnx"}, matrix: [run]`, 1), ""},
		{"read by when",
			strings.Replace(text("", all), "seed:", "when: [{if: {run: a}, with: {target: x}}], seed:", 1),
			""},
		{"some only",
			strings.Replace(text("", all), "seed:", "only: [{method: r}, {run: a}], seed:", 1), "run"},
		{"compared with one of them", text("", pair(`maps: maps, other: "maps[run=a]"`)), ""},
		{"what is made of all compared with one of them", text("",
			pair(`maps: ranks, other: "maps[run=a]"`)), ""},
		{"compared with what is made of one of them", text("", pair(`maps: maps, other: first`)), ""},
		{"both made of them", text("", pair(`maps: ranks, other: first`)), ""},
		{"each compared with what is made of it", text("", pair(`maps: maps, other: ranks`)), "run"},
		{"compared with one of another stage", text("", pair(`maps: maps, other: "same[run=a]"`)), "run"},
		{"compared with one on another axis", text("", pair(`maps: maps, other: "maps[method=s]"`)), "run"},
		{"compared with each other", text("", pair(`maps: maps, other: same`)), "run"},
		{"no seed reads it", strings.Replace(text("", all), "${run.n}", "${method.n}", 1), ""},
	} {
		p, _ := Parse("x.yaml", []byte(tc.text), "", averages, Overrides{})
		if got := strings.Join(p.stepCalled(t, "table").Cells[0].Replicates, " "); got != tc.want {
			t.Errorf("%s: the replicates are %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestIdleAxis holds when an axis changes no cell of the stage that adds it.
func TestIdleAxis(t *testing.T) {
	const idle = `the axis "run" changes nothing of the stage "maps": its cells are the same`
	text := func(run, maps string) string {
		return `name: x
axes:
  method: {s: {uses: attribute/saliency}, r: {uses: attribute/random}}
  run: ` + run + `
stages:
  images: {uses: dataset/shapes}
  model: {uses: model/onnx, with: {path: a.onnx}}
  maps: {` + maps + `, in: {model: model, images: images}}
publish: [maps]
`
	}
	for _, tc := range []struct{ name, text, warning, hint string }{
		{"forgotten seed", text("[1, 2]", `uses: "${method}", matrix: [method, run]`),
			"x.yaml:8:46: stages.maps.matrix[1]: " + idle, `did you mean seed: "${run}"?`},
		{"ids with fields", text("{a: {}, b: {}}", `uses: attribute/random, matrix: [run]`), idle,
			`did you mean seed: "${run.seed}", with a field seed of each id?`},
		{"nothing to draw",
			text("[1, 2]", `uses: attribute/saliency, matrix: [run]`), idle, "refer to it"},
		{"a seed", text("[1, 2]", `uses: "${method}", matrix: [method, run], seed: "${run}"`), "", ""},
		{"one id", text("[1]", `uses: "${method}", matrix: [method, run]`), "", ""},
		{"equal values",
			text("{a: {n: 1}, b: {n: 1}}", `uses: attribute/random, matrix: [run], seed: "${run.n}"`), "",
			""},
		{"an axis of the input",
			strings.Replace(text("[1, 2]", `uses: attribute/saliency, matrix: [run]`),
				"a.onnx}", `"${run}.onnx"}, matrix: [run]`, 1), "", ""},
		{"another cell", text("[1, 2]",
			`uses: attribute/random, matrix: [run], when: [{if: {run: 1}, with: {target: x}}]`), "", ""},
	} {
		p := mustParse(t, paperCatalog(), tc.text, Overrides{})
		var got []string
		for _, d := range p.Warnings {
			if strings.Contains(d.Msg, "changes nothing") {
				got = append(got, d.String())
				if !strings.Contains(d.Hint, tc.hint) {
					t.Errorf("%s: the hint is %q, want %q", tc.name, d.Hint, tc.hint)
				}
			}
		}
		all := strings.Join(got, "\n")
		if (tc.warning == "") != (all == "") || !strings.Contains(all, tc.warning) {
			t.Errorf("%s: warned of %q, want %q", tc.name, all, tc.warning)
		}
	}
}

// TestIdleAxisReachesOthers holds that an axis whose cells differ further down is no mistake.
func TestIdleAxisReachesOthers(t *testing.T) {
	const text = `name: x
axes: {size: [a, b]}
stages:
  images: {uses: dataset/shapes, matrix: [size]}
  model: {uses: model/onnx, matrix: [size], with: {path: %s}}
  maps: {uses: attribute/saliency, in: {model: model, images: images}}
publish: [maps]
`
	for path, want := range map[string]int{`"${size}.onnx"`: 0, "a.onnx": 2} {
		n := 0
		for _, d := range mustParse(t, paperCatalog(), fmt.Sprintf(text, path), Overrides{}).Warnings {
			if strings.Contains(d.Msg, "changes nothing") {
				n++
			}
		}
		if n != want {
			t.Errorf("%s: %d warnings, want %d", path, n, want)
		}
	}
}
