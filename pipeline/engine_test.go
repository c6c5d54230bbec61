package pipeline_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/pipeline/schedule"
)

const chain = `
name: chain
axes:
  by: [2, 3]
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/scale, matrix: [by], in: {images: images}, with: {by: "${by}"}}
  scores: {uses: lab/add, in: {maps: maps, images: images}}
  total:  {uses: lab/sum, in: {scores: scores}, over: all}
publish: [total]
`

func TestSecondRunExecutesNothing(t *testing.T) {
	l := newLab(t)
	l.items = []string{"a=1", "b=2", "c=3"}
	want := "by=2: 3 6 9\nby=3: 4 8 12\n"
	if got := l.text(l.mustRun(chain), "total"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	l.want("first run", "source", 3, "scale", 6, "add", 6, "sum", 1)
	if got := l.text(l.mustRun(chain), "total"); got != want {
		t.Errorf("cached: got %q, want %q", got, want)
	}
	if len(l.ran) != 0 {
		t.Errorf("second run executed %v", l.ran)
	}
}

// What runs after each change of a data set of three images and two methods.
func TestOnlyWhatChangedRuns(t *testing.T) {
	for _, tc := range []struct {
		name                    string
		items                   []string
		yaml                    string
		chunk                   int
		source, scale, add, sum int
	}{
		{name: "append", items: []string{"a=1", "b=2", "c=3", "d=4"}, source: 1, scale: 2, add: 2, sum: 1},
		{name: "insert in front", items: []string{"z=9", "a=1", "b=2", "c=3"}, source: 1, scale: 2, add: 2,
			sum: 1},
		{name: "delete", items: []string{"a=1", "c=3"}, sum: 1},
		{name: "reorder", items: []string{"c=3", "a=1", "b=2"}, sum: 1},
		{name: "duplicate", items: []string{"a=1", "b=2", "c=3", "a2=1"}, sum: 1},
		{name: "rename", items: []string{"x=1", "y=2", "z=3"}},
		{name: "change one", items: []string{"a=1", "b=5", "c=3"}, source: 1, scale: 2, add: 2, sum: 1},
		{name: "two equal new ones", items: []string{"a=1", "b=2", "c=3", "d=4", "e=4"}, source: 1, scale: 2,
			add: 2, sum: 1},
		{name: "chunk size", items: []string{"a=1", "b=2", "c=3"}, chunk: 1},
		{name: "chunk size and append", items: []string{"a=1", "b=2", "c=3", "d=4"}, chunk: 1, source: 1,
			scale: 2, add: 2, sum: 1},
		{name: "one method's parameter", items: []string{"a=1", "b=2", "c=3"},
			yaml: strings.Replace(chain, "[2, 3]", "[2, 5]", 1), scale: 3, add: 3, sum: 1},
		{name: "a method less", items: []string{"a=1", "b=2", "c=3"},
			yaml: strings.Replace(chain, "[2, 3]", "[2]", 1), sum: 1},
		{name: "names of stages", items: []string{"a=1", "b=2", "c=3"},
			yaml: strings.NewReplacer("maps:   {", "heat: {", "maps: maps", "maps: heat").Replace(chain)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t)
			l.items = []string{"a=1", "b=2", "c=3"}
			l.mustRun(chain)
			l.items, l.chunk = tc.items, tc.chunk
			yaml := tc.yaml
			if yaml == "" {
				yaml = chain
			}
			again := l.mustRun(yaml)
			l.want(tc.name, "source", tc.source, "scale", tc.scale, "add", tc.add, "sum", tc.sum)
			fresh := newLab(t)
			fresh.items = tc.items
			if got, want := l.text(again, "total"), fresh.text(fresh.mustRun(yaml), "total"); got != want {
				t.Errorf("incremental result %q differs from a fresh one %q", got, want)
			}
		})
	}
}

// A changed input whose results come out equal stops the wave.
func TestEarlyCutOff(t *testing.T) {
	l := newLab(t)
	l.items = []string{"a=1"}
	l.mustRun(chain)
	l.items = []string{"a=01"} // another source, the same image
	l.mustRun(chain)
	l.want("cut off", "source", 1, "scale", 0, "add", 0, "sum", 0)
}

func TestResultsDontDependOnScheduling(t *testing.T) {
	var items []string
	for i := range 37 {
		items = append(items, fmt.Sprintf("i%d=%d", i, i%29))
	}
	var want string
	for _, tc := range []struct {
		devices      string
		batch, chunk int
	}{{"cpu:0", 16, 16}, {"cpu:0", 1, 1}, {"cpu", 0, 0}, {"cpu:0,cpu:1", 3, 5},
		{"cpu:0,cpu:1,cpu:2,cpu:3", 64, 2}} {
		for _, keep := range []string{"keep", "none"} {
			l := newLab(t)
			l.items, l.devices, l.batch, l.chunk = items, tc.devices, tc.batch, tc.chunk
			got := l.text(l.mustRun(strings.Replace(chain, "with: {by", "store: "+keep+", with: {by", 1)),
				"total")
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("%+v, %s: results differ", tc, keep)
			}
		}
	}
}

// TestEveryDeviceHasWork holds that items are cut into chunks of about a size, 16 at most, so that all
// devices have as many, unless somebody says otherwise; that host work isn't cut for them; and that a single
// item is computed with all threads.
func TestEveryDeviceHasWork(t *testing.T) {
	half, quarter := max(1, runtime.GOMAXPROCS(0)/2), max(1, runtime.GOMAXPROCS(0)/4)
	for _, tc := range []struct {
		threads       int // of all items together; 0 if that isn't looked at
		items, chunk  int
		devices       string
		scaled, added []int // sizes of chunks
	}{
		{0, 5, 0, "cpu:0", []int{5}, []int{5}},
		{5 * half, 5, 0, "cpu:0,cpu:1", []int{2, 3}, []int{5}},
		{4 * quarter, 1, 0, "cpu:0,cpu:1,cpu:2,cpu:3", []int{1}, []int{1}},
		{0, 2, 0, "cpu:0,cpu:1,cpu:2", []int{1, 1}, []int{2}},
		{40 * half, 40, 0, "cpu:0,cpu:1", []int{10, 10, 10, 10}, []int{12, 14, 14}},
		{5 * half, 5, 4, "cpu:0,cpu:1", []int{1, 4}, []int{1, 4}},
	} {
		l := newLab(t)
		l.number(tc.items)
		l.devices, l.chunk = tc.devices, tc.chunk
		l.mustRun(`
name: few
stages:
  images: {uses: lab/source}
  scaled: {uses: lab/scale, store: keep, in: {images: images}}
  added:  {uses: lab/add, in: {maps: scaled, images: images}}
publish: []
`)
		if got := l.ran["threads"]; tc.threads > 0 && got != tc.threads {
			t.Errorf("%d items on %s: computed with %d threads, want %d", tc.items, tc.devices, got,
				tc.threads)
		}
		for step, want := range map[string][]int{"scaled": tc.scaled, "added": tc.added} {
			done := []int{0}
			for _, e := range l.events {
				if e.Kind == pipeline.Items && e.Step == step {
					done = append(done, e.Done)
				}
			}
			slices.Sort(done)
			var sizes []int
			for i := range done[1:] {
				sizes = append(sizes, done[i+1]-done[i])
			}
			slices.Sort(sizes)
			if !slices.Equal(sizes, want) {
				t.Errorf("%d items, chunk %d, %s: %s was done in chunks of %v, want %v", tc.items, tc.chunk,
					tc.devices, step, sizes, want)
			}
		}
	}
}

func TestExpand(t *testing.T) {
	const yaml = `
name: tree
stages:
  images:   {uses: lab/source}
  children: {uses: lab/expand, in: {images: images}}
  childmaps: {uses: lab/scale, in: {images: children}}
  mixed:    {uses: lab/add, in: {maps: childmaps, images: images}}
publish: []
`
	l := newLab(t)
	l.items = []string{"a=1", "b=2", "c=4"}
	res := l.mustRun(yaml)
	if got, want := l.text(res, "children"), "a/0=1000 b/0=2000 b/1=2001 c/0=4000 "; got != want {
		t.Errorf("children: got %q, want %q", got, want)
	}
	if got, want := l.text(res, "mixed"), "a/0=2001 b/0=4002 b/1=4004 c/0=8004 "; got != want {
		t.Errorf("mixed: got %q, want %q", got, want)
	}
	l.items = []string{"n=5", "a=1", "b=2", "c=4"}
	res = l.mustRun(yaml)
	l.want("insert", "source", 1, "expand", 1, "scale", 2, "add", 2)
	const want = "n/0=10005 n/1=10007 a/0=2001 b/0=4002 b/1=4004 c/0=8004 "
	if got := l.text(res, "mixed"); got != want {
		t.Errorf("mixed after an insertion: got %q, want %q", got, want)
	}
}

func TestFailuresStayLocal(t *testing.T) {
	const yaml = `
name: failing
axes:
  fail: {yes: {fail: true}, no: {fail: false}}
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/scale, matrix: [fail], in: {images: images}, with: {fail: "${fail.fail}"}}
  scores: {uses: lab/add, in: {maps: maps}}
  strict: {uses: lab/sum, in: {scores: scores}, over: all}
  loose:  {uses: lab/sum, in: {scores: scores}, over: all, missing: drop}
publish: [strict, loose]
`
	l := newLab(t)
	l.items = []string{"a=1"}
	res, err := l.run(yaml)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	for cell, want := range map[string]schedule.State{
		"maps[fail=yes]": schedule.Failed, "maps[fail=no]": schedule.Done,
		"scores[fail=yes]": schedule.Blocked,
		"scores[fail=no]":  schedule.Done, "strict": schedule.Blocked, "loose": schedule.Done,
	} {
		c, err := find(res.Plan, cell)
		if err != nil {
			t.Fatal(err)
		}
		if got := res.State(c); got != want {
			t.Errorf("%s: fate %d, want %d", cell, got, want)
		}
	}
	if got, want := l.text(res, "loose"), "fail=no: 2\n"; got != want {
		t.Errorf("loose: got %q, want %q", got, want)
	}
}

const flowing = `
name: flowing
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/scale, in: {images: images}, store: none}
  scores: {uses: lab/add, in: {maps: maps, images: images}, with: {plus: 1}}
  total:  {uses: lab/sum, in: {scores: scores, maps: maps}, over: all}
publish: [total]
`

func TestBytesThatArentKept(t *testing.T) {
	l := newLab(t)
	for i := range 50 {
		l.items = append(l.items, fmt.Sprintf("i%d=%d", i, i))
	}
	l.chunk = 8
	res := l.mustRun(flowing)
	l.want("flowing", "scale", 51, "add", 50) // one map again, for the text
	want := l.text(res, "total")
	l.mustRun(flowing)
	l.want("again", "scale", 0, "add", 0, "sum", 0)
	l.items = append(l.items, "n=77")
	l.mustRun(flowing)
	l.want("append", "source", 1, "add", 1, "sum", 1, "scale", 2)
	l.items = l.items[:50]
	if got := l.text(l.mustRun(flowing), "total"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	l.mustRun(strings.Replace(flowing, "plus: 1", "plus: 2", 1))
	l.want("another offset", "source", 0, "scale", 51, "add", 50, "sum", 1)
}

func TestMisbehavingStages(t *testing.T) {
	const yaml = `
name: wild
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/wild, in: {images: images}, with: {do: %s}}
publish: []
`
	l := newLab(t)
	l.items = []string{"a=1", "b=2"}
	l.mustRun(fmt.Sprintf(yaml, "oom"))
	var said []string
	for _, e := range l.events {
		if e.Kind == pipeline.Warning {
			said = append(said, e.Reason)
		}
	}
	if len(said) != 3 || !strings.Contains(said[2], "batches of 2") {
		t.Errorf("out of memory: said %q", said)
	}
	for do, want := range map[string]string{"panic": "a bug in runexp: ", "less": "puts 0 payloads"} {
		res, err := l.run(fmt.Sprintf(yaml, do))
		if err != nil {
			t.Fatal(err)
		}
		c, _ := find(res.Plan, "maps")
		err = res.Err(c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", do, err, want)
		}
		var bug *plan.BugError
		if !errors.As(err, &bug) {
			t.Errorf("%s: %v isn't a BugError", do, err)
		}
		res.Close()
	}
}

// The digest of the compiled program stands in the key: a model that compiles to the same program doesn't run
// again.
func TestProgramsInKeys(t *testing.T) {
	l := newLab(t)
	l.items = []string{"a=1"}
	path := filepath.Join(l.dir, "model.bin")
	yaml := `
name: compiled
stages:
  model:  {uses: lab/file, with: {path: model.bin}}
  images: {uses: lab/source}
  maps:   {uses: lab/wild, in: {images: images, model: model}}
publish: []
`
	write := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	l.mustRun(yaml)
	l.want("first", "compiled", 1, "wild", 1, "file", 1)
	l.mustRun(yaml)
	l.want("again", "compiled", 0, "wild", 0, "file", 0)
	write("two")
	l.mustRun(yaml)
	l.want("another program", "compiled", 1, "wild", 1, "file", 1)
}

// A new build compiles every program once, and executes the cells whose program is another one; planning does
// the former and writes nothing.
func TestNewBuilds(t *testing.T) {
	l := newLab(t)
	l.items = []string{"a=1", "b=2"}
	if err := os.WriteFile(filepath.Join(l.dir, "model.bin"), []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	const yaml = `
name: built
axes:
  method: {first: {do: program}, second: {do: oom}}
stages:
  model:  {uses: lab/file, with: {path: model.bin}}
  images: {uses: lab/source}
  maps:   {uses: lab/wild, matrix: [method], in: {images: images, model: model}, with: {do: "${method.do}"}}
publish: []
`
	l.batch = 2
	l.mustRun(yaml)
	l.want("first", "compiled", 2, "wild", 4)
	if got := len(l.said(pipeline.CellCompiling)); got != 2 {
		t.Errorf("%d programs are said to be compiled, want 2", got)
	}
	published := func() (done bool) {
		t.Helper()
		_, done, err := results.Publish(l.ctx, l.mustRun(yaml), filepath.Join(l.dir, "review"), "",
			publish.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	if published() || !published() {
		t.Error("a folder is up to date before it's written, or isn't after")
	}
	l.build = "another"
	before := l.memos()
	l.ran = map[string]int{}
	_, o := l.outlook(yaml)
	if !o.Complete() || !bytes.Equal(before, l.memos()) {
		t.Error("a plan after a build that changes nothing isn't complete, or wrote something")
	}
	l.want("planned by another build", "compiled", 2, "wild", 0)
	l.mustRun(yaml)
	l.want("another build", "compiled", 2, "wild", 0, "file", 0)
	l.mustRun(yaml)
	l.want("another build again", "compiled", 0, "wild", 0)
	if published() {
		t.Error("what another build wrote is taken for up to date")
	}
	l.build, l.rule = "a third", "changed"
	plan, o := l.outlook(yaml)
	c, err := find(plan, "maps[method=first]")
	if err != nil {
		t.Fatal(err)
	}
	if w := o.Why(c); len(w.Changes) != 1 || w.Changes[0].Name != "program" || w.Changes[0].Was == "" {
		t.Errorf("why: %+v", w)
	}
	l.mustRun(yaml)
	l.want("a rule changed", "compiled", 2, "wild", 4)
	l.build, l.rule = "", ""
	l.mustRun(yaml)
	l.want("the first build again", "compiled", 0, "wild", 0)
}

// memos returns what the store remembers.
func (l *lab) memos() []byte {
	l.t.Helper()
	b, err := os.ReadFile(filepath.Join(l.dir, "store", "memo.log"))
	if err != nil {
		l.t.Fatal(err)
	}
	return b
}

func TestForceSaysReproduced(t *testing.T) {
	l := newLab(t)
	l.items = []string{"a=1", "b=2"}
	l.mustRun(chain)
	l.force = []string{"maps[by=2]"}
	res := l.mustRun(chain)
	l.want("forced", "source", 0, "scale", 2, "add", 0)
	if len(res.Forced) != 1 || !res.Forced[0].Reproduced || res.Forced[0].Cell != "maps[by=2]" {
		t.Errorf("forced: %+v", res.Forced)
	}
}
