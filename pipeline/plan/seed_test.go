package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		{"{a: {n: 18446744073709551615}, b: {n: 0}}", `"${run.n}"`, "s,a=0 s,b=0 r,a=18446744073709551615 r,b=0"},
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
	if got := [2]uint64{set.stepCalled(t, "maps").Cells[1].Seed, set.stepCalled(t, "other").Cells[0].Seed}; got !=
		[2]uint64{11, 6} {
		t.Errorf("with --set the seeds are %d", got)
	}
	if again := mustParse(t, paperCatalog(), string(set.Resolved()), Overrides{}); again.stepCalled(t,
		"maps").Cells[1].Seed != 11 {
		t.Error("the experiment as it ran has another seed")
	}
}

func TestBadSeeds(t *testing.T) {
	text := func(axis, seed string) string { return fmt.Sprintf(seedText, axis, seed) }
	for _, tc := range []struct{ name, text, want, hint string }{
		{"draws nothing", strings.Replace(text("[1]", "3"), "uses: attribute/random", "uses: attribute/saliency", 1),
			`x.yaml:9:94: stages.maps.seed: the stage "maps" draws no random numbers: attribute/saliency`,
			"leave seed out; it belongs to a stage that draws"},
		{"a text", text("[1]", "many"), `"many" is not a whole number from 0`, "or write a reference"},
		{"a part", text("[1]", `"1${run}"`), "a seed is a whole reference", "write ${axis}"},
		{"negative", text("[1]", "-1"), "-1 is not a whole number from 0", ""},
		{"unknown axis", text("[1]", `"${runs}"`), `no axis is called "runs"`, `did you mean "run"?`},
		{"an id that isn't a number", text("[one]", `"${run}"`),
			`x.yaml:5:9: axes.run[0]: "one" is not a whole number from 0 to 2⁶⁴ − 1 (used by stages.maps.seed)`,
			"write run: [1, 2, 3]"},
		{"an id with fields", text("{1: {n: 3}}", `"${run}"`), "is not a whole number",
			"write ${run.seed}"},
		{"an axis that the stage lacks", strings.Replace(text("[1]", `"${run}"`), "[method, run]", "[method]", 1),
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
