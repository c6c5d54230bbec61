package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/pipeline/schedule"
)

const draws = `
name: draws
axes:
  draw: [DRAWS]
  by: {two: {x: 2}, three: {x: 3}}
stages:
  images: {uses: lab/source}
  draws:  {uses: lab/draw, matrix: [draw], in: {images: images}, with: {draw: "${draw}"}, store: none}
  maps:   {uses: lab/scale, matrix: [by], in: {images: draws}, with: {by: "${by.x}"}, store: none}
  fold:   {uses: lab/fold, in: {maps: maps, images: draws, original: images}, over: [draw]}
  total:  {uses: lab/sum, in: {scores: fold}, over: all}
publish: [total]
`

func drawn(ids string) string { return strings.Replace(draws, "DRAWS", ids, 1) }

// TestFoldedDraws holds that an each stage with over folds one member of every draw, in one job where bytes
// aren't kept, which computes no map twice; and that it finds the same whether they are, in whatever chunks.
func TestFoldedDraws(t *testing.T) {
	want := ""
	for _, store := range []string{"none", "keep"} {
		for _, chunk := range []int{0, 1, 3} {
			for _, devices := range []string{"cpu:0", "cpu:0,cpu:1,cpu:2"} {
				l := newLab(t)
				l.number(7)
				l.chunk, l.devices = chunk, devices
				yaml := strings.ReplaceAll(drawn("a, b, c, d, e"), "store: none", "store: "+store)
				got := l.text(l.mustRun(yaml), "total")
				l.want("draws", "draw", 35, "scale", 70, "fold", 14)
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("store: %s, chunk %d, %s: got %q, want %q", store, chunk, devices, got, want)
				}
				l.mustRun(strings.Replace(yaml, "a, b, c, d, e", "e, a, d, c, b", 1))
				l.want("other order", "draw", 0, "scale", 0, "fold", 0)
			}
		}
	}
	if strings.Count(want, " 5.000") != 14 { // five members a call, whatever they say
		t.Errorf("got %q", want)
	}
	l := newLab(t)
	l.number(7)
	l.mustRun(strings.ReplaceAll(drawn("a, b, c, d, f"), ", store: none", ""))
	l.mustRun(strings.ReplaceAll(drawn("a, b, c, d, e"), ", store: none", ""))
	l.want("another draw", "draw", 7, "scale", 14, "fold", 14)
}

// TestFoldGoesOn holds that a run that was stopped in the middle of a job goes on to the same results, and so
// does one that adds items.
func TestFoldGoesOn(t *testing.T) {
	l := newLab(t)
	l.number(9)
	want := l.text(l.mustRun(drawn("a, b, c")), "total")
	for _, after := range []int{1, 10, 30, 50} {
		l := newLab(t)
		l.number(9)
		ctx, cancel := context.WithCancel(context.Background())
		l.ctx, l.chunk = ctx, 2
		l.folding = func() {
			if after--; after == 0 {
				cancel()
			}
		}
		_, err := l.run(drawn("a, b, c"))
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		known := l.ran["fold"]
		l.ctx, l.folding = context.Background(), nil
		if got := l.text(l.mustRun(drawn("a, b, c")), "total"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if l.ran["fold"] > 18 || known > 4 && l.ran["fold"] == 18 {
			t.Errorf("stopped after %d folds, then %v", known, l.ran)
		}
	}
	l.number(11)
	l.mustRun(drawn("a, b, c"))
	l.want("two more", "draw", 6, "scale", 12, "fold", 4)
	// Another score of the same maps has them computed again, and nothing else.
	l.mustRun(strings.Replace(drawn("a, b, c"), ", original: images", "", 1))
	l.want("without the original", "scale", 66, "fold", 22)
}

const sets = `
name: sets
axes:
  set: {first: {uses: lab/source}, second: {uses: lab/other}}
stages:
  images: {uses: lab/source}
  sets:   {uses: "${set}", matrix: [set]}
  maps:   {uses: lab/scale, in: {images: sets.images}}
  fold:   {uses: lab/fold, in: {maps: maps}, over: [set]}
  more:   {uses: lab/fold, in: {maps: maps, original: images}, over: [set]}
publish: []
`

// TestFoldOfDifferentItems holds what a call is for where the collapsed cells have different items, and what
// an item that one of them lacks means.
func TestFoldOfDifferentItems(t *testing.T) {
	l := newLab(t)
	l.items, l.others = []string{"a=1", "b=2", "c=3"}, []string{"c=30", "a=10"}
	res, err := l.run(sets)
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range []string{"fold", "more"} {
		f, why := ended(t, res, cell)
		if f != schedule.Failed || why != `input "maps[set=second]" has nothing for the item "b"` {
			t.Errorf("%s: %v %q", cell, f, why)
		}
	}
	res.Close()
	res = l.mustRun(strings.ReplaceAll(sets, "over: [set]", "over: [set], missing: drop"))
	// 2 and 20, after a coordinate of 9 and then of 10 letters: 1.5 (2 + 9) + 20 + 10.
	if got := l.text(res, "fold"); got != "a=2.0000465e+06 c=2.0000925e+06 " {
		t.Errorf("got %q", got)
	}
	if got := l.text(res, "more"); got != "a=2.0000475e+06 b=1.000015e+06 c=2.0000955e+06 " {
		t.Errorf("got %q", got)
	}
	const drops = ": missing: drop leaves out 1 items that not all collapsed cells have"
	said := slices.Sorted(slices.Values(l.said(pipeline.Warning)))
	if d := cmp.Diff([]string{"fold" + drops, "more" + drops}, said); d != "" {
		t.Error(d)
	}
	l.others = append(l.others, "b=20")
	res = l.mustRun(sets)
	if got := l.text(res, "fold"); got != "a=2.0000465e+06 b=2.0000695e+06 c=2.0000925e+06 " {
		t.Errorf("got %q", got)
	}
}

// TestFailingDraw holds that a cell that fails in a job takes with it what folds it, unless missing is drop.
func TestFailingDraw(t *testing.T) {
	yaml := strings.Replace(drawn("a, b, c"), `draw: "${draw}"`, `draw: "${draw}", fail: b`, 1)
	for _, store := range []string{"none", "keep"} {
		l := newLab(t)
		l.number(4)
		yaml := strings.ReplaceAll(yaml, "store: none", "store: "+store)
		res, err := l.run(yaml)
		if err != nil {
			t.Fatal(err)
		}
		if f, why := ended(t, res, "fold[by=two]"); f != schedule.Blocked ||
			why != "it needs draws[draw=b], which failed" {
			t.Errorf("%v %q", f, why)
		}
		if f, _ := ended(t, res, "maps[by=two,draw=c]"); f != schedule.Done {
			t.Errorf("%v", f)
		}
		res.Close()
		l = newLab(t)
		l.number(4)
		yaml = strings.Replace(yaml, "over: [draw]", "over: [draw], missing: drop", 1)
		if res, err = l.run(yaml); err != nil {
			t.Fatal(err)
		}
		if got := l.text(res, "total"); strings.Count(got, " 2.0000") != 8 {
			t.Errorf("got %q", got)
		}
		res.Close()
	}
}

// TestFoldByOrigin holds that an item takes members by its origin, in the order of their coordinates.
func TestFoldByOrigin(t *testing.T) {
	l := newLab(t)
	l.items = []string{"a=2", "b=5", "c=3"}
	l.mustRun(`
name: origins
axes:
  draw: [y, x]
stages:
  images:   {uses: lab/source}
  children: {uses: lab/expand, in: {images: images}}
  draws:    {uses: lab/draw, matrix: [draw], in: {images: images}}
  names:    {uses: lab/foldnames, in: {children: children, draws: draws}, over: [draw]}
publish: []
`)
	slices.Sort(l.saw)
	want := []string{"a/0: x/a y/a", "a/1: x/a y/a", "b/0: x/b y/b", "b/1: x/b y/b"}
	if d := cmp.Diff(want, l.saw); d != "" {
		t.Error(d)
	}
}

// TestFoldIsSmall holds that of many draws and methods, the bytes of all draws and of one method live at a
// time, of as many items as there is room for.
func TestFoldIsSmall(t *testing.T) {
	const draws, methods, items, size = 40, 10, 8, 16 << 10
	const image = 8 * size // bytes; a map has half of that
	pipeline.LimitLive(t, 3*draws*image)
	l := newLab(t)
	l.number(items)
	most := uint64(0)
	n := 0
	l.folding = func() {
		if n++; n%(2*draws) == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}
	l.mustRun(manyDraws(draws, methods, size))
	l.want("draws", "draw", draws*items, "widen", draws*methods*items, "fold", methods*items)
	if bound := uint64(3*draws+20) * image; most > bound {
		t.Errorf("%d MB live, want at most %d", most>>20, bound>>20)
	}
}

// manyDraws is an experiment of draws and methods whose images have size numbers.
func manyDraws(draws, methods, size int) string {
	var d, m []string
	for i := range draws {
		d = append(d, fmt.Sprintf("d%d", i))
	}
	for i := range methods {
		m = append(m, fmt.Sprintf("m%d: {x: %d}", i, i))
	}
	return fmt.Sprintf(`
name: many
axes:
  draw: [%s]
  method: {%s}
stages:
  images: {uses: lab/source}
  draws:  {uses: lab/draw, matrix: [draw], in: {images: images}, with: {draw: "${draw}", size: %d}, store: none}
  maps:   {uses: lab/widen, matrix: [method], in: {images: draws}, with: {by: "${method.x}", size: %[3]d}, store: none}
  fold:   {uses: lab/fold, in: {maps: maps, images: draws}, over: [draw]}
publish: []
`, strings.Join(d, ", "), strings.Join(m, ", "), size)
}

// TestFoldIsOneLine holds that a review has one line, with a count, of cells along an axis that is collapsed
// before anything is published, whatever the order of its ids.
func TestFoldIsOneLine(t *testing.T) {
	l := newLab(t)
	l.number(2)
	lines := func(yaml string) (list []string) {
		v, err := results.Of(context.Background(), l.mustRun(yaml), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range v.Cells {
			list = append(list, fmt.Sprintf("%s ×%d %s %s", c.Name, c.Cells, c.Params, c.Definition.Short()))
		}
		return list
	}
	got := lines(drawn("a, b, c"))
	if d := cmp.Diff(got, lines(drawn("c, a, b"))); d != "" {
		t.Error(d)
	}
	for i, line := range got {
		got[i] = line[:strings.LastIndex(line, " ")]
	}
	want := []string{`images ×0 {"fail":""}`, `draws ×3 {"fail":"","size":600}`,
		`maps[by=two] ×3 {"by":2,"fail":false}`, `maps[by=three] ×3 {"by":3,"fail":false}`,
		`fold[by=two] ×0 {}`, `fold[by=three] ×0 {}`, `total ×0 {}`}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// Published, each draw has its line.
	got = lines(strings.Replace(drawn("a, b, c"), "publish: [total]", "publish: [total, draws]", 1))
	if len(got) != 9 || !strings.HasPrefix(got[1], "draws[draw=a] ×0") {
		t.Errorf("got %q", got)
	}
}
