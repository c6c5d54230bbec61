package pipeline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/schedule"
)

// A Whole stage may pair items of its ports by id or origin. Which ones belong together is part of its key;
// how they are called isn't.
func TestWhatWholeStagesPairIsInTheKey(t *testing.T) {
	const two = `
name: two
stages:
  left:  {uses: lab/source}
  right: {uses: lab/other}
  text:  {uses: lab/pairs, in: {left: left, right: right}}
publish: [text]
`
	const family = `
name: family
stages:
  left:  {uses: lab/source}
  right: {uses: lab/expand, in: {images: left}}
  text:  {uses: lab/pairs, in: {left: left, right: right}}
publish: [text]
`
	for _, tc := range []struct {
		name, yaml          string
		items, others       []string
		newItems, newOthers []string
		was, is             string
		runs                int
	}{
		{"swapped names", two, []string{"a=1", "b=2"}, []string{"a=3", "b=4"}, []string{"a=1", "b=2"},
			[]string{"b=3", "a=4"}, "1-3 2-4 ", "1-4 2-3 ", 1},
		{"new names on both sides", two, []string{"a=1", "b=2"}, []string{"b=3", "a=4"},
			[]string{"x=1", "y=2"}, []string{"y=3", "x=4"}, "1-4 2-3 ", "1-4 2-3 ", 0},
		{"new names on one side", two, []string{"a=1", "b=2"}, []string{"a=3", "b=4"}, []string{"x=1", "b=2"},
			[]string{"a=3", "b=4"}, "1-3 2-4 ", "2-4 ", 1},
		{"renamed parents", family, []string{"a=1", "b=2"}, nil, []string{"b=1", "c=2"}, nil,
			"1-1000 2-2000 2-2001 ", "1-1000 2-2000 2-2001 ", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t)
			l.items, l.others = tc.items, tc.others
			if got := l.text(l.mustRun(tc.yaml), "text"); got != tc.was {
				t.Errorf("got %q, want %q", got, tc.was)
			}
			l.items, l.others = tc.newItems, tc.newOthers
			if got := l.text(l.mustRun(tc.yaml), "text"); got != tc.is {
				t.Errorf("then got %q, want %q", got, tc.is)
			}
			l.want(tc.name, "pairs", tc.runs)
		})
	}
}

// A stage that shows ids runs again for the items that were renamed, and no others.
func TestNamedStagesFollowNames(t *testing.T) {
	const yaml = `
name: named
stages:
  images: {uses: lab/source}
  tags:   {uses: lab/tag, in: {images: images}}
publish: []
`
	l := newLab(t)
	l.items = []string{"a=1", "b=2", "c=1"}
	number := func(id byte) string { return fmt.Sprint(float64(id) + 1000*float64(id)) }
	want := func(ids string) string {
		var b strings.Builder
		for i := range ids {
			fmt.Fprintf(&b, "%c=%s ", ids[i], number(ids[i]))
		}
		return b.String()
	}
	if got := l.text(l.mustRun(yaml), "tags"); got != want("abc") {
		t.Errorf("got %q, want %q", got, want("abc"))
	}
	l.want("equal images of other names", "tag", 3)
	l.items = []string{"a=1", "z=2", "c=1"}
	if got := l.text(l.mustRun(yaml), "tags"); got != want("azc") {
		t.Errorf("renamed: got %q, want %q", got, want("azc"))
	}
	l.want("renamed", "tag", 1)
}

// A stage that is given several values sees their places, so these are in its keys and in those of its items.
func TestPlacesOfValuesAreInTheKey(t *testing.T) {
	const yaml = `
name: vote
axes:
  m: {%s: {text: one}, %s: {text: three}}
stages:
  images: {uses: lab/source}
  models: {uses: lab/value, matrix: [m], with: {text: "${m.text}"}}
  votes:  {uses: lab/vote, in: {images: images, models: models.model}, over: [m]}
publish: []
`
	l := newLab(t)
	l.items = []string{"a=1", "b=2"}
	if got, want := l.text(l.mustRun(fmt.Sprintf(yaml, "u", "v")), "votes"), "a=1315 b=1315 "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := l.text(l.mustRun(fmt.Sprintf(yaml, "u", "vvv")), "votes"), "a=1335 b=1335 "; got != want {
		t.Errorf("another place: got %q, want %q", got, want)
	}
}

// Cells that ask the same of the same are executed once.
func TestEqualCellsRunOnce(t *testing.T) {
	const yaml = `
name: equal
axes:
  by: {a: {n: 2}, b: {n: 2}, c: {n: 2}, d: {n: 3}}
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/scale, matrix: [by], in: {images: images}, with: {by: "${by.n}"}}
  scores: {uses: lab/add, in: {maps: maps}}
  total:  {uses: lab/sum, in: {scores: scores}, over: all}
publish: [total]
`
	l := newLab(t)
	l.items = []string{"a=1", "b=2", "c=3"}
	want := "by=a: 2 4 6\nby=b: 2 4 6\nby=c: 2 4 6\nby=d: 3 6 9\n"
	if got := l.text(l.mustRun(yaml), "total"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	l.want("three equal cells", "scale", 6, "add", 6)
	l.force = []string{"maps"}
	if res := l.mustRun(yaml); len(res.Forced) != 4 {
		t.Errorf("forced: %v", res.Forced)
	}
	l.want("forced", "scale", 12, "add", 0)
}

// Sources that belong to items are in the keys of these.
func TestSourcesOfItems(t *testing.T) {
	const yaml = `
name: sourced
stages:
  images: {uses: lab/source}
  scores: {uses: lab/sourced, in: {images: images}}
publish: []
`
	l := newLab(t)
	l.items = []string{"a=1", "b=2"}
	if got, want := l.text(l.mustRun(yaml), "scores"), "a=10 b=11 "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	l.items = []string{"a=1", "long=2"}
	if got, want := l.text(l.mustRun(yaml), "scores"), "a=10 long=14 "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	l.want("another source for one", "sourced", 1)
}

// What a stage's items are made of may be nothing at all.
func TestNoItems(t *testing.T) {
	const yaml = `
name: nothing
stages:
  images:   {uses: lab/source}
  children: {uses: lab/expand, in: {images: images}}
  maps:     {uses: lab/scale, in: {images: children}%s}
  scores:   {uses: lab/add, in: {maps: maps, images: children}}
  sums:     {uses: lab/add, in: {maps: maps, images: images}}
  total:    {uses: lab/sum, in: {scores: scores}, over: all}
publish: [total]
`
	for _, keep := range []string{"", ", store: none"} {
		l := newLab(t)
		l.items = []string{"a=3", "b=6"}
		for range 2 {
			if got, want := l.text(l.mustRun(fmt.Sprintf(yaml, keep)), "total"), ":\n"; got != want {
				t.Errorf("%q: got %q, want %q", keep, got, want)
			}
		}
	}
	l := newLab(t)
	res, err := l.run(chain)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	if f, why := ended(t, res, "images"); f != schedule.Failed || !strings.Contains(why, "no item at all") {
		t.Errorf("a source without items: %v %q", f, why)
	}
}

// A payload may be empty.
func TestEmptyPayload(t *testing.T) {
	const yaml = `
name: empty
stages:
  value: {uses: lab/value}
publish: [value]
`
	l := newLab(t)
	for range 2 {
		if got := l.text(l.mustRun(yaml), "value"); got != "" {
			t.Errorf("got %q", got)
		}
	}
	l.want("again", "value", 0)
}

// why tells what a person changed, at the end of the chain of causes.
func TestWhy(t *testing.T) {
	l := newLab(t)
	l.items = []string{"a=1", "b=2"}
	why := func(yaml, cell string) string {
		t.Helper()
		plan, o := l.outlook(yaml)
		c, err := find(plan, cell)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for w := o.Why(c); w != nil; w = w.Cause {
			lines = append(lines, w.Cell+": "+w.State)
			for _, c := range w.Changes {
				lines = append(lines, fmt.Sprintf("  %s: %s -> %s", c.Name, c.Was, c.Is))
			}
			if w.Others > 0 {
				lines = append(lines, fmt.Sprintf("  and %d more", w.Others))
			}
		}
		return strings.Join(lines, "\n")
	}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
		}
	}
	with := func(plus string) string {
		return strings.Replace(chain, "images: images}}", "images: images}, with: {plus: "+plus+"}}", 1)
	}
	check("nothing stored", why(chain, "total"),
		"total: depends on scores[by=2]\n  the cell:  -> new: nothing of that name was executed here")
	l.mustRun(chain)
	check("cached", why(chain, "total"), "total: cached")
	l.mustRun(with("1"))
	l.mustRun(chain) // nothing runs, and yet this is what was last
	check("changed back", why(with("2"), "scores[by=2]"),
		"scores[by=2]: runs: nothing is stored under its key\n  with.plus: 0 -> 2")
	check("a parameter upstream", why(with("2"), "total"),
		"total: depends on scores[by=2]\n  and 1 more\nscores[by=2]: runs: nothing is stored under its "+
			"key\n  with.plus: 0 -> 2")
	l.items = []string{"a=1", "b=3"}
	got := why(chain, "maps[by=2]")
	if !strings.HasPrefix(got,
		"maps[by=2]: depends on images\nimages: runs: nothing is stored under its key\n  source b: ") ||
		strings.Count(got, "\n") != 3 || !strings.Contains(got, "  sources: 2 items, ") {
		t.Errorf("another image:\n%s", got)
	}
	l.force = []string{"maps"}
	l.items = []string{"a=1", "b=2"}
	check("forced", why(chain, "maps[by=2]"), "maps[by=2]: runs: forced")
}

// A program isn't known before the model that it's compiled for is.
func TestWhyOfPrograms(t *testing.T) {
	const yaml = `
name: compiled
stages:
  model:  {uses: lab/file, with: {path: model.bin}}
  images: {uses: lab/source}
  maps:   {uses: lab/wild, in: {images: images, model: model}}
publish: []
`
	l := newLab(t)
	l.items = []string{"a=1"}
	path := filepath.Join(l.dir, "model.bin")
	for _, text := range []string{"one", "two"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if text == "one" {
			l.mustRun(yaml)
		}
	}
	plan, o := l.outlook(yaml)
	c, err := find(plan, "maps")
	if err != nil {
		t.Fatal(err)
	}
	w := o.Why(c)
	if len(w.Changes) != 0 || w.Cause == nil || w.Cause.Cell != "model" || len(w.Cause.Changes) != 2 {
		t.Errorf("why: %+v, caused by %+v", w, w.Cause)
	}
}

// TestWhyWithoutFiles: why answers for a cell that drops what is missing when all of that can't be read.
func TestWhyWithoutFiles(t *testing.T) {
	const yaml = `
name: why
axes:
  path: [a.bin, b.bin]
stages:
  model:  {uses: lab/file, matrix: [path], with: {path: "${path}"}}
  images: {uses: lab/source}
  maps:   {uses: lab/wild, matrix: [path], in: {images: images, model: model}}
  plain:  {uses: lab/scale, in: {images: images}}
  scores: {uses: lab/add, in: {maps: plain}}
  total:  {uses: lab/sum, in: {scores: scores, maps: maps}, over: [path], missing: drop}
publish: []
`
	l := newLab(t)
	l.items = []string{"a=1"}
	for _, file := range []string{"a.bin", "b.bin"} {
		if err := os.WriteFile(filepath.Join(l.dir, file), []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l.mustRun(yaml)
	for _, file := range []string{"a.bin", "b.bin"} {
		if err := os.Remove(filepath.Join(l.dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	p, o := l.outlook(yaml)
	c, err := find(p, "total")
	if err != nil {
		t.Fatal(err)
	}
	if got := o.State(c); got.Kind != pipeline.Broken {
		t.Errorf("total: %s", got)
	}
	gone := 0
	for _, change := range o.Why(c).Changes {
		if change.Is == "gone" {
			gone++
		}
	}
	if gone != 2 {
		t.Errorf("%d maps are gone of 2: %+v", gone, o.Why(c).Changes)
	}
}

// A stage's seed moves the keys of its own cells, to those that the same seed of the experiment gives, and no
// others'.
func TestStageSeedIsInTheKey(t *testing.T) {
	const yaml = `
name: seeded
seed: 3
stages:
  images: {uses: lab/source}
  mine:   {uses: lab/draw, in: {images: images}%s}
  other:  {uses: lab/draw, in: {images: images}}
publish: []
`
	l := newLab(t)
	l.items = []string{"a=1", "b=2"}
	before := l.mustRun(fmt.Sprintf(yaml, ""))
	was := l.text(before, "mine")
	l.want("one seed", "draw", 2) // equal cells run once
	keys := func(res *pipeline.Result) (keys [3]string) {
		for i, name := range []string{"images", "mine", "other"} {
			c, err := find(res.Plan, name)
			if err != nil {
				t.Fatal(err)
			}
			keys[i] = res.Key(c).Short()
		}
		return keys
	}
	if same := l.mustRun(fmt.Sprintf(yaml, ", seed: 3")); keys(same) != keys(before) {
		t.Errorf("the experiment's seed at the stage: keys %v, not %v", keys(same), keys(before))
	}
	l.want("the experiment's seed", "draw", 0)
	own := l.mustRun(fmt.Sprintf(yaml, ", seed: 4"))
	if a, b := keys(own), keys(before); a[0] != b[0] || a[1] == b[1] || a[2] != b[2] {
		t.Errorf("a seed of the stage's own: keys %v, were %v", a, b)
	}
	if is := l.text(own, "mine"); is == was || l.text(own, "other") != was {
		t.Errorf("a seed of the stage's own draws %q, the other stage %q; both drew %q", is,
			l.text(own, "other"), was)
	}
	l.want("a seed of its own", "draw", 2)
	all := strings.Replace(fmt.Sprintf(yaml, ""), "seed: 3", "seed: 4", 1)
	if is := l.text(l.mustRun(all), "other"); is != l.text(own, "mine") {
		t.Errorf("the same seed of the experiment draws %q, not %q", is, l.text(own, "mine"))
	}
	l.want("the same seed of the experiment", "draw", 0)
}
