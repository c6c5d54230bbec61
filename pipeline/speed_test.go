package pipeline_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/execute"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
)

// TestEstimate checks estimates from speeds of the same cell, of the same stage on the same model, and of the
// same stage and parameters on another model.
func TestEstimate(t *testing.T) {
	l := newLab(t)
	for i := range 40 {
		l.items = append(l.items, fmt.Sprintf("i%d=%d", i, i))
	}
	for name, content := range map[string]string{"a": "a net", "b": "another"} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text := func(more string) string {
		return fmt.Sprintf(`
name: lab
axes: {net: {a: {path: %[1]s/a}, b: {path: %[1]s/b}}}
stages:
  images: {uses: lab/source}
  net: {uses: lab/file, matrix: [net], with: {path: "${net.path}"}}
  maps: {uses: lab/wild, in: {images: images, model: net}%s}
  maps2: {uses: lab/wild, in: {images: images, model: net}, with: {do: panic}}
  scores: {uses: lab/add, in: {maps: maps}}
  text: {uses: lab/sum, in: {scores: scores, maps: maps2}, over: all}
publish: [text]
`, l.dir, more)
	}
	p := l.parse(text(""))
	s, err := store.Open(filepath.Join(l.dir, "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := l.engine(p, s)
	estimate := func(p *plan.Plan, step string, want pipeline.Estimate) {
		t.Helper()
		o, err := e.Plan(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Steps {
			if s.Name != step {
				continue
			}
			got := o.Estimate(s)
			if got.Seconds = math.Round(1e6*got.Seconds) / 1e6; got != want {
				t.Errorf("%s: %+v, want %+v", step, got, want)
			}
		}
	}
	estimate(p, "maps", pipeline.Estimate{Unknown: 2})

	// 4 items took 8 s and 16 passes. 40 take 80, and as long as before to load.
	pipeline.Remember(t, e, p, "maps[net=a]", execute.Speed{Calls: 4, Made: 4, Forward: 12, Backward: 4,
		Seconds: 8, Loading: 1.5, Programs: 2})
	one := pipeline.Estimate{Seconds: 81.5, Loading: 1.5, Programs: 2, Forward: 120, Backward: 40, Unknown: 1}
	estimate(p, "maps", one)
	// With other parameters the stage is taken to be as fast.
	estimate(p, "maps2", one)
	// A pass takes 3 s in net b.
	pipeline.Remember(t, e, p, "maps2[net=b]", execute.Speed{Calls: 2, Made: 2, Forward: 5, Seconds: 15})
	all := pipeline.Estimate{Seconds: 81.5 + 20*15, Loading: 1.5, Programs: 2, Forward: 120 + 100,
		Backward: 40}
	estimate(p, "maps2", all)
	other := l.parse(text(", with: {do: less}"))
	estimate(other, "maps", all)

	// A stage that sees everything reads 40 scores and 40 maps of each net.
	pipeline.Remember(t, e, p, "text", execute.Speed{Calls: 10, Seconds: 1})
	estimate(p, "text", pipeline.Estimate{Seconds: 16})
}

// TestEstimateSharesPrograms checks that cells of one stage, parameters and model count what it took to
// compile their programs once, whichever of them compiled these and came last, and so do those that are left.
func TestEstimateSharesPrograms(t *testing.T) {
	l := newLab(t)
	l.items = []string{"x=1", "y=2"}
	const text = `
name: lab
stages:
  images: {uses: lab/source}
  scaled: {uses: lab/scale, in: {images: images}}
  scores: {uses: lab/add, in: {maps: scaled}}
`
	p := l.parse(text + `  joined: {uses: lab/add, in: {maps: scaled, images: images}}
publish: [scores, joined]
`)
	s, err := store.Open(filepath.Join(l.dir, "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := l.engine(p, s)
	slots := float64(runtime.GOMAXPROCS(0))
	total := func(want pipeline.Estimate) {
		t.Helper()
		spent := execute.Speed{Calls: 2, Made: 2, Seconds: 4, Loading: 3, Programs: 2}
		less := execute.Speed{Calls: 2, Made: 2, Seconds: 4, Loading: 0.5}
		pipeline.Remember(t, e, p, "scores", spent, "joined", less)
		o, err := e.Plan(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		var all pipeline.Estimate
		for _, s := range p.Steps {
			if s.Name == "scores" || s.Name == "joined" {
				all.Add(o.Estimate(s))
			}
		}
		if want.Seconds, want.Loading = want.Seconds/slots, want.Loading/slots; all != want {
			t.Errorf("%+v, want %+v", all, want)
		}
	}
	total(pipeline.Estimate{Seconds: 11.5, Loading: 3.5, Programs: 2})
	result, err := e.Run(t.Context(), l.parse(text+"publish: [scores]\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	result.Close()
	total(pipeline.Estimate{Seconds: 7.5, Loading: 3.5, Programs: 2}) // of the cell that is left
}

// TestEstimateScalesPasses checks that a stage on a model on which it never ran takes the passes that it took
// on another, at this model's speed.
func TestEstimateScalesPasses(t *testing.T) {
	l := newLab(t)
	l.items = []string{"x=1", "y=2", "z=3"}
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p := l.parse(fmt.Sprintf(`
name: lab
axes: {net: {a: {path: %[1]s/a}, b: {path: %[1]s/b}}}
stages:
  images: {uses: lab/source}
  net: {uses: lab/file, matrix: [net], with: {path: "${net.path}"}}
  maps: {uses: lab/wild, in: {images: images, model: net}}
publish: [maps]
`, l.dir))
	s, err := store.Open(filepath.Join(l.dir, "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := l.engine(p, s)
	// Passes of net b are known from another stage, as the net's own speed.
	pipeline.Remember(t, e, p, "maps[net=a]", execute.Speed{Calls: 1, Made: 1, Forward: 10, Seconds: 1})
	pipeline.RememberModel(t, e, p, "maps[net=b]", execute.Speed{Calls: 7, Forward: 7, Seconds: 14})
	o, err := e.Plan(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	// 3 items take 30 passes: 3 s in net a, 60 s in net b.
	got, want := o.Estimate(p.Steps[len(p.Steps)-1]), pipeline.Estimate{Seconds: 63, Forward: 60}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestMeasured checks what a run remembers of its cells: the next plan knows all of them.
func TestMeasured(t *testing.T) {
	l := newLab(t)
	l.items = []string{"x=1", "y=2"}
	const text = `
name: lab
stages:
  images: {uses: lab/source}
  children: {uses: lab/expand, in: {images: images}}
  scaled: {uses: lab/scale, in: {images: children}}
  scores: {uses: lab/add, in: {maps: scaled}}
  text: {uses: lab/sum, in: {scores: scores}}
publish: [text]
`
	l.mustRun(text)
	l.items = []string{"x=4", "y=5", "z=7", "u=8"}
	p, o := l.outlook(text)
	for _, s := range p.Steps {
		if e := o.Estimate(s); e.Unknown > 0 || e.Seconds < 0 || e.Seconds > 10 {
			t.Errorf("%s: %+v", s.Name, e)
		}
		// Two items had three children.
		if n := o.Likely(s.Cells[0]); (s.Name == "scaled" || s.Name == "scores") && n != 6 {
			t.Errorf("%s: %d items are likely, want 6", s.Name, n)
		}
	}
}

// TestMeasuredByAnother checks that what another experiment measured is known, where that left nothing to
// execute, and so to measure, of what both read.
func TestMeasuredByAnother(t *testing.T) {
	l := newLab(t)
	l.number(6)
	const text = `
name: %s
stages:
  images: {uses: lab/source}
  scaled: {uses: lab/scale, in: {images: images}}
  scores: {uses: lab/add, in: {maps: scaled}, with: {plus: %d}}
publish: [scores]
`
	l.mustRun(fmt.Sprintf(text, "one", 1))
	l.mustRun(fmt.Sprintf(text, "two", 2)) // of which the scores alone are measured
	for i := range 4 {
		l.items = append(l.items, fmt.Sprintf("new%d=%d", i, i))
	}
	for _, name := range []string{"two", "three"} {
		p, o := l.outlook(fmt.Sprintf(text, name, 3))
		for _, s := range p.Steps {
			if e := o.Estimate(s); e.Unknown > 0 {
				t.Errorf("%s, %s: %+v", name, s.Name, e)
			}
		}
	}
}

// TestMeasuredByAnotherMachine checks that a plan knows all cells where a limited run finds everything in the
// store, which other experiments or machines filled: it measures nothing itself, however often it is run.
func TestMeasuredByAnotherMachine(t *testing.T) {
	const text = `
name: %s
stages:
  images: {uses: lab/source}
  children: {uses: lab/expand, in: {images: images}}
  scaled: {uses: lab/scale, in: {images: children}}
  scores: {uses: lab/add, in: {maps: scaled}}
  joined: {uses: lab/add, in: {maps: scaled, images: images}}
  text: {uses: lab/sum, in: {scores: scores}}
publish: [joined, text]
`
	for _, second := range []struct{ name, machine string }{{"two", ""}, {"one", "other"}, {"two", "other"}} {
		l := newLab(t)
		l.number(6)
		l.mustRun(fmt.Sprintf(text, "one"))
		l.machine = second.machine
		l.mustRun(fmt.Sprintf(text, second.name))
		if len(l.ran) > 0 {
			t.Fatalf("%+v: the second run executed %v", second, l.ran)
		}
		for i := range 6 {
			l.items = append(l.items, fmt.Sprintf("new%d=%d", i, i))
		}
		p, o := l.outlook(fmt.Sprintf(text, second.name))
		for _, s := range p.Steps {
			e := o.Estimate(s)
			if e.Unknown > 0 {
				t.Errorf("%+v, %s: %+v", second, s.Name, e)
			}
			if elsewhere := second.machine != ""; (e.Elsewhere > 0) != elsewhere {
				t.Errorf("%+v, %s: measured elsewhere: %d cells", second, s.Name, e.Elsewhere)
			}
			if n := o.Likely(s.Cells[0]); n != 12 && s.Name != "text" {
				t.Errorf("%+v, %s: %d items are likely, want 12", second, s.Name, n)
			}
		}
	}
}
