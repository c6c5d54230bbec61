package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A lab is a store and a catalog of stages that count what they execute.
type lab struct {
	t      *testing.T
	dir    string
	mu     sync.Mutex
	ran    map[string]int // items by stage
	events []pipeline.Event
	stages map[string]*stages.Stage
	items  []string // what lab/source lists: id=content
	hook   func(point string) error
	drain  chan struct{}

	devices      string
	batch, chunk int
	force        []string
	failFast     bool
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t, dir: t.TempDir(), ran: map[string]int{}, stages: map[string]*stages.Stage{}, devices: "cpu"}
	for _, s := range []stages.Stage{l.source(), l.scale(), l.add(), l.expand(), l.group(), l.sum(), l.file(), l.wild()} {
		l.stages[s.Name] = &s
	}
	return l
}

func (l *lab) Lookup(name string) (*stages.Stage, bool) { s, ok := l.stages[name]; return s, ok }

func (l *lab) Names() []string {
	var names []string
	for n := range l.stages {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func (l *lab) count(stage string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ran[stage] += n
}

func number(b []byte) float64 {
	x, err := stages.ScalarOf(b)
	if err != nil {
		panic(err)
	}
	return x
}

// big returns a payload beyond what records hold inline.
func big(x float64) []byte {
	v := make([]float64, 20)
	for i := range v {
		v[i] = x + float64(i)
	}
	return stages.NewTensor(v, 20).Encode()
}

func first(b []byte) float64 {
	t, err := stages.DecodeTensor(b)
	if err != nil {
		panic(err)
	}
	return t.Float64s()[0]
}

type sourceParams struct {
	Fail string `yaml:"fail" doc:"id of an item that can't be read"`
	Axis string `yaml:"axis" doc:"makes cells differ" key:"-"`
}

// source makes an image of every item that the lab lists.
func (l *lab) source() stages.Stage {
	return stages.New(stages.Def[sourceParams]{
		Name: "lab/source", Doc: "items", Version: 1,
		Outputs: []stages.Port{{Name: "images", Type: stages.Images}, {Name: "labels", Type: stages.Labels}},
		Sources: func(p sourceParams, _ []string) ([]stages.Source, error) {
			var out []stages.Source
			for _, it := range l.items {
				id, content, _ := strings.Cut(it, "=")
				out = append(out, stages.Source{ID: id, Note: content})
			}
			return out, nil
		},
		Run: func(_ context.Context, p sourceParams, e *stages.Env) error {
			for i := range e.Len() {
				s := e.Source(i)
				if s.ID == p.Fail {
					return fmt.Errorf("item %q is broken", s.ID)
				}
				var x float64
				for _, c := range s.Note {
					x = 10*x + float64(c-'0')
				}
				e.Put("images", i, big(x))
				e.Put("labels", i, stages.Scalar(x))
				l.count("source", 1)
			}
			return nil
		},
	})
}

type scaleParams struct {
	By   float64 `yaml:"by" doc:"factor"`
	Fail bool    `yaml:"fail" doc:"fail"`
}

func (l *lab) scale() stages.Stage {
	return stages.New(stages.Def[scaleParams]{
		Name: "lab/scale", Doc: "scaled items", Version: 1, Device: true, Defaults: scaleParams{By: 2},
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "maps", Type: stages.Maps}},
		Facts: func(p scaleParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
			return map[string]stages.Facts{"maps": {"by": fmt.Sprint(p.By)}}, nil
		},
		Run: func(ctx context.Context, p scaleParams, e *stages.Env) error {
			if p.Fail {
				return errors.New("told to fail")
			}
			for i := range e.Len() {
				if err := ctx.Err(); err != nil {
					return err
				}
				e.Put("maps", i, big(p.By*first(e.In("images", i))))
				l.count("scale", 1)
			}
			return nil
		},
	})
}

type addParams struct {
	Plus float64 `yaml:"plus" doc:"offset"`
}

// add joins two inputs.
func (l *lab) add() stages.Stage {
	return stages.New(stages.Def[addParams]{
		Name: "lab/add", Doc: "sums of two inputs", Version: 1,
		Inputs:  []stages.Port{{Name: "maps", Type: stages.Maps}, {Name: "images", Type: stages.Images, Optional: true}},
		Outputs: []stages.Port{{Name: "scores", Type: stages.Scores}},
		Run: func(_ context.Context, p addParams, e *stages.Env) error {
			for i := range e.Len() {
				x := first(e.In("maps", i)) + p.Plus
				if b := e.In("images", i); b != nil {
					x += first(b)
				}
				e.Put("scores", i, stages.Scalar(x))
				l.count("add", 1)
			}
			return nil
		},
	})
}

type expandParams struct{}

// expand makes x mod 3 children of an item.
func (l *lab) expand() stages.Stage {
	return stages.New(stages.Def[expandParams]{
		Name: "lab/expand", Doc: "children", Version: 1, Relation: stages.Expand,
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "images", Type: stages.Images}},
		Run: func(_ context.Context, _ expandParams, e *stages.Env) error {
			for i := range e.Len() {
				x := first(e.In("images", i))
				for k := range int(x) % 3 {
					e.Add("images", i, fmt.Sprint(k), big(1000*x+float64(k)))
				}
				l.count("expand", 1)
			}
			return nil
		},
	})
}

// group sums what belongs to each original item.
func (l *lab) group() stages.Stage {
	return stages.New(stages.Def[expandParams]{
		Name: "lab/group", Doc: "sums by origin", Version: 1, Relation: stages.Group,
		Inputs:  []stages.Port{{Name: "children", Type: stages.Images}, {Name: "maps", Type: stages.Maps}},
		Outputs: []stages.Port{{Name: "scores", Type: stages.Scores}},
		Run: func(_ context.Context, _ expandParams, e *stages.Env) error {
			for i := range e.Len() {
				x := first(e.In("maps", i))
				for _, m := range e.Members("children", i) {
					x += first(m.Data)
				}
				e.Put("scores", i, stages.Scalar(x))
				l.count("group", 1)
			}
			return nil
		},
	})
}

// sum writes everything it sees into a text.
func (l *lab) sum() stages.Stage {
	return stages.New(stages.Def[expandParams]{
		Name: "lab/sum", Doc: "a text of all scores", Version: 1, Relation: stages.Whole,
		Inputs:  []stages.Port{{Name: "scores", Type: stages.Scores}, {Name: "maps", Type: stages.Maps, Optional: true}},
		Outputs: []stages.Port{{Name: "text", Type: stages.Text}},
		Run: func(_ context.Context, _ expandParams, e *stages.Env) error {
			var b strings.Builder
			for _, d := range e.Ports["scores"] {
				b.WriteString(pipeline.CoordString(d.Coord) + ":")
				for i := range d.Items {
					p, err := d.Load(i)
					if err != nil {
						return err
					}
					fmt.Fprintf(&b, " %g", number(p))
				}
				b.WriteString("\n")
			}
			for _, d := range e.Ports["maps"] {
				p, err := d.Load(0)
				if err != nil {
					return err
				}
				fmt.Fprintf(&b, "map %g\n", first(p))
			}
			e.Set("text", []byte(b.String()))
			e.SetFacts("text", stages.Facts{"ext": "md"})
			l.count("sum", 1)
			return nil
		},
	})
}

type fileParams struct {
	Path string `yaml:"path" doc:"a file" file:"read"`
}

// file is a value made of a file.
func (l *lab) file() stages.Stage {
	return stages.New(stages.Def[fileParams]{
		Name: "lab/file", Doc: "a file's bytes", Version: 1, Relation: stages.Whole,
		Outputs: []stages.Port{{Name: "model", Type: stages.Model}},
		Sources: func(p fileParams, _ []string) ([]stages.Source, error) {
			return []stages.Source{{ID: "file", File: p.Path}}, nil
		},
		Run: func(_ context.Context, _ fileParams, e *stages.Env) error {
			b, err := os.ReadFile(e.Read[0].File)
			e.Set("model", b)
			l.count("file", 1)
			return err
		},
	})
}

type wildParams struct {
	Do string `yaml:"do" doc:"what to do" choices:"oom|panic|less|program"`
}

// wild misbehaves as it is told.
func (l *lab) wild() stages.Stage {
	return stages.New(stages.Def[wildParams]{
		Name: "lab/wild", Doc: "misbehaves", Version: 1, Device: true, Defaults: wildParams{Do: "program"},
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}, {Name: "model", Type: stages.Model, Optional: true}},
		Outputs: []stages.Port{{Name: "maps", Type: stages.Maps}},
		Program: func(_ context.Context, p wildParams, e *stages.Env) (stages.Digest, error) {
			l.count("compiled", 1)
			b, err := e.Value("model")
			return stages.Sum(b[:min(len(b), 1)]), err // only the first byte matters to it
		},
		Run: func(_ context.Context, p wildParams, e *stages.Env) error {
			switch p.Do {
			case "oom":
				if e.Batch > 2 {
					return fmt.Errorf("device: %w", stages.ErrOutOfMemory)
				}
			case "panic":
				panic("told to")
			case "less":
				return nil
			}
			for i := range e.Len() {
				e.Put("maps", i, e.In("images", i))
				l.count("wild", 1)
			}
			return nil
		},
	})
}

// run loads an experiment and executes it; load and set-up errors end the test.
func (l *lab) run(yaml string) (*pipeline.Result, error) {
	l.t.Helper()
	plan, err := pipeline.Parse("lab.yaml", []byte(yaml), l.dir, l, pipeline.Overrides{})
	if err != nil {
		l.t.Fatal(err)
	}
	s, err := store.Open(filepath.Join(l.dir, "store"), store.Options{Hook: l.hook})
	if err != nil {
		return nil, err
	}
	devices, err := device.Parse(l.devices)
	if err != nil {
		l.t.Fatal(err)
	}
	force, err := plan.Selector(l.force)
	if err != nil {
		l.t.Fatal(err)
	}
	l.ran, l.events = map[string]int{}, nil
	e := &pipeline.Engine{
		Store: s, Devices: devices, Batch: l.batch, Chunk: l.chunk, FailFast: l.failFast, Force: force,
		MadeBy:  func(class string) string { return class },
		OnEvent: func(ev pipeline.Event) { l.events = append(l.events, ev) },
	}
	res, err := e.Run(context.Background(), plan, l.drain)
	if err == nil {
		err = s.Close()
	}
	return res, err
}

func (l *lab) mustRun(yaml string) *pipeline.Result {
	l.t.Helper()
	res, err := l.run(yaml)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(res.Close)
	for _, c := range res.Plan.Cells {
		if fate, err := res.Fate(c); fate > pipeline.Executed || err != nil {
			l.t.Fatalf("%s: %v", c, err)
		}
	}
	return res
}

// text returns what a cell's first port holds, as text.
func (l *lab) text(res *pipeline.Result, cell string) string {
	l.t.Helper()
	c, err := res.Plan.Find(cell)
	if err != nil {
		l.t.Fatal(err)
	}
	d, err := res.Data(context.Background(), c, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	var b strings.Builder
	for i := range d.Items {
		p, err := d.Load(i)
		if err != nil {
			l.t.Fatal(err)
		}
		if c.Stage.Outputs[0].Type.Form == stages.FormTensor {
			fmt.Fprintf(&b, "%s=%g ", d.Items[i].ID, first(p))
		} else {
			b.Write(p)
		}
	}
	return b.String()
}

func (l *lab) want(what string, counts ...any) {
	l.t.Helper()
	for i := 0; i < len(counts); i += 2 {
		if got := l.ran[counts[i].(string)]; got != counts[i+1].(int) {
			l.t.Errorf("%s: %s executed %d items, want %d (all: %v)", what, counts[i], got, counts[i+1], l.ran)
		}
	}
}

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
		{name: "insert in front", items: []string{"z=9", "a=1", "b=2", "c=3"}, source: 1, scale: 2, add: 2, sum: 1},
		{name: "delete", items: []string{"a=1", "c=3"}, sum: 1},
		{name: "reorder", items: []string{"c=3", "a=1", "b=2"}, sum: 1},
		{name: "duplicate", items: []string{"a=1", "b=2", "c=3", "a2=1"}, sum: 1},
		{name: "rename", items: []string{"x=1", "y=2", "z=3"}},
		{name: "change one", items: []string{"a=1", "b=5", "c=3"}, source: 1, scale: 2, add: 2, sum: 1},
		{name: "two equal new ones", items: []string{"a=1", "b=2", "c=3", "d=4", "e=4"}, source: 1, scale: 2, add: 2, sum: 1},
		{name: "chunk size", items: []string{"a=1", "b=2", "c=3"}, chunk: 1},
		{name: "chunk size and append", items: []string{"a=1", "b=2", "c=3", "d=4"}, chunk: 1, source: 1, scale: 2, add: 2, sum: 1},
		{name: "one method's parameter", items: []string{"a=1", "b=2", "c=3"}, yaml: strings.Replace(chain, "[2, 3]", "[2, 5]", 1), scale: 3, add: 3, sum: 1},
		{name: "a method less", items: []string{"a=1", "b=2", "c=3"}, yaml: strings.Replace(chain, "[2, 3]", "[2]", 1), sum: 1},
		{name: "names of stages", items: []string{"a=1", "b=2", "c=3"}, yaml: strings.NewReplacer("maps:   {", "heat: {", "maps: maps", "maps: heat").Replace(chain)},
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
	}{{"cpu", 16, 16}, {"cpu:0", 1, 1}, {"cpu:0,cpu:1", 3, 5}, {"cpu:0,cpu:1,cpu:2,cpu:3", 64, 2}} {
		for _, keep := range []string{"keep", "none"} {
			l := newLab(t)
			l.items, l.devices, l.batch, l.chunk = items, tc.devices, tc.batch, tc.chunk
			got := l.text(l.mustRun(strings.Replace(chain, "with: {by", "store: "+keep+", with: {by", 1)), "total")
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("%+v, %s: results differ", tc, keep)
			}
		}
	}
}

func TestExpandAndGroup(t *testing.T) {
	const yaml = `
name: tree
stages:
  images:   {uses: lab/source}
  children: {uses: lab/expand, in: {images: images}}
  maps:     {uses: lab/scale, in: {images: images}}
  sums:     {uses: lab/group, in: {children: children, maps: maps}}
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
	if got, want := l.text(res, "sums"), "a=1002 b=4005 c=4008 "; got != want {
		t.Errorf("sums: got %q, want %q", got, want)
	}
	if got, want := l.text(res, "mixed"), "a/0=2001 b/0=4002 b/1=4004 c/0=8004 "; got != want {
		t.Errorf("mixed: got %q, want %q", got, want)
	}
	l.items = []string{"n=5", "a=1", "b=2", "c=4"}
	res = l.mustRun(yaml)
	l.want("insert", "source", 1, "expand", 1, "group", 1)
	if got, want := l.text(res, "sums"), "n=10011 a=1002 b=4005 c=4008 "; got != want {
		t.Errorf("sums after an insertion: got %q, want %q", got, want)
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
	for cell, want := range map[string]pipeline.Fate{
		"maps[fail=yes]": pipeline.Failed, "maps[fail=no]": pipeline.Executed, "scores[fail=yes]": pipeline.Blocked,
		"scores[fail=no]": pipeline.Executed, "strict": pipeline.Blocked, "loose": pipeline.Executed,
	} {
		c, err := res.Plan.Find(cell)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := res.Fate(c); got != want {
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

func objects(t *testing.T, l *lab) (files []string) {
	err := filepath.WalkDir(filepath.Join(l.dir, "store", "objects"), func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Every object is damaged in turn, in three ways; a run that reads it computes it
// again and says so.
func TestDamagedObjects(t *testing.T) {
	damage := map[string]func(path string, b []byte) error{
		"truncated": func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)-1], 0o644) },
		"altered": func(path string, b []byte) error {
			b = slices.Clone(b)
			b[len(b)/2] ^= 1
			return os.WriteFile(path, b, 0o644)
		},
		"gone": func(path string, _ []byte) error { return os.Remove(path) },
	}
	for name, do := range damage {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.items, l.chunk = []string{"a=1", "b=2", "c=3"}, 2
			want := l.text(l.mustRun(chain), "total")
			paths := objects(t, l)
			if len(paths) < 5 {
				t.Fatalf("only %d objects", len(paths))
			}
			for _, path := range paths {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				os.Chmod(path, 0o644)
				if err := do(path, b); err != nil {
					t.Fatal(err)
				}
				// Every payload is read: by what runs anew, and by the text below.
				res := l.mustRun(strings.Replace(chain, "[2, 3]", "[2, 3, 4]", 1))
				for _, c := range res.Plan.Cells {
					l.text(res, c.String())
				}
				if got := l.text(l.mustRun(chain), "total"); got != want {
					t.Errorf("%s: got %q, want %q", filepath.Base(path), got, want)
				}
				if after, err := os.ReadFile(path); err != nil || !slices.Equal(after, b) {
					t.Errorf("%s wasn't repaired: %v", filepath.Base(path), err)
				}
			}
		})
	}
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
		c, _ := res.Plan.Find("maps")
		_, err = res.Fate(c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", do, err, want)
		}
		var bug *pipeline.BugError
		if !errors.As(err, &bug) {
			t.Errorf("%s: %v isn't a BugError", do, err)
		}
		res.Close()
	}
}

// The digest of the compiled program stands in the key: a model that compiles to
// the same program doesn't run again.
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

func TestDrainFinishesWhatHasBegun(t *testing.T) {
	l := newLab(t)
	for i := range 64 {
		l.items = append(l.items, fmt.Sprintf("i%d=%d", i, i))
	}
	l.chunk, l.devices = 1, "cpu:0"
	l.drain = make(chan struct{})
	close(l.drain)
	res, err := l.run(chain)
	if !errors.Is(err, pipeline.ErrDrained) {
		t.Fatalf("error %v, want ErrDrained", err)
	}
	res.Close()
	l.drain = nil
	done := l.ran["scale"]
	l.mustRun(chain)
	if l.ran["scale"]+done > 128 {
		t.Errorf("%d items before the stop and %d after it are more than all", done, l.ran["scale"])
	}
}

// The run is killed at every point where it writes; the next one finishes with
// the right results and less than all the work.
func TestKilledAnywhere(t *testing.T) {
	want := ""
	kills, resumed := 0, 0
	for n := 1; ; n++ {
		l := newLab(t)
		l.items, l.chunk, l.devices = []string{"a=1", "b=2", "c=3", "d=4"}, 1, "cpu:0"
		var mu sync.Mutex
		points := 0
		l.hook = func(string) error {
			mu.Lock()
			defer mu.Unlock()
			if points++; points >= n {
				return errors.New("killed")
			}
			return nil
		}
		res, err := l.run(chain)
		if res != nil {
			res.Close()
		}
		reached := points >= n
		before := l.ran["scale"]
		l.hook = nil
		res = l.mustRun(chain)
		got := l.text(res, "total")
		if want == "" {
			want = got
		}
		if got != want {
			t.Fatalf("killed at point %d: got %q, want %q", n, got, want)
		}
		s, err2 := store.Open(filepath.Join(l.dir, "store"), store.Options{})
		if err2 != nil {
			t.Fatal(err2)
		}
		problems, err2 := s.Verify(context.Background(), nil)
		if err2 != nil || len(problems) > 0 {
			t.Fatalf("killed at point %d: the store has problems %v %v", n, problems, err2)
		}
		if before > 1 && l.ran["scale"] < 8 {
			resumed++
		}
		if !reached {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		kills++
	}
	if kills < 50 || resumed < 10 {
		t.Errorf("%d kills of which %d left work that was resumed: too few to mean anything", kills, resumed)
	}
	t.Logf("%d kill points, %d resumed with less than all the work", kills, resumed)
}
