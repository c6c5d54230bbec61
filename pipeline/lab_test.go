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
	"time"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A lab is a store and a catalog of stages that count what they execute.
type lab struct {
	t       *testing.T
	dir     string
	mu      sync.Mutex
	ran     map[string]int // items by stage
	events  []pipeline.Event
	stages  map[string]*stages.Stage
	folding func()   // called for every member that lab/fold sees
	items   []string // what lab/source lists: id=content
	others  []string // what lab/other lists
	saw     []string // the runs of lab/shared
	most    int      // cells that lab/shared takes at once, 0 for all
	slow    float64  // whose program of lab/shared takes long to compile
	drift   float64  // what lab/stray puts next
	hook    func(point string) error
	drain   chan struct{}
	ctx     context.Context

	// compute is how a device other than the processor makes what lab/remote does of an item.
	compute func(d stages.Device, id string, x float64) ([]byte, error)
	compare int
	judging chan struct{} // closed, if it isn't nil, when the processor first computes an item of lab/remote
	slowly  time.Duration // an item of lab/remote on the processor
	askew   float64       // the factor with which lab/shared is off on such a device

	devices      string
	machine      string // what makes results, behind the class
	batch, chunk int
	force        []string
	same         bool // device
	failFast     bool
	build        string // of the compiler
	rule         string // what lab/wild compiles differently from build to build
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t, dir: scratch(t), ctx: context.Background(), ran: map[string]int{},
		stages: map[string]*stages.Stage{}, devices: "cpu:0"}
	for _, s := range append(append(l.odd(), l.folds()...), l.source(), l.scale(), l.add(), l.expand(),
		l.sum(), l.file(), l.wild(), l.shared()) {
		l.stages[s.Name] = &s
	}
	return l
}

// scratch returns a folder in memory where there's such a file system: labs write, and sync, a lot.
func scratch(t *testing.T) string {
	t.Helper()
	if dir, err := os.MkdirTemp("/dev/shm", "runexp-lab-"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
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
	v := make([]float64, 600)
	for i := range v {
		v[i] = x + float64(i)
	}
	return stages.NewTensor(v, 600).Encode()
}

func first(b []byte) float64 {
	t, err := stages.DecodeTensor(b)
	if err != nil {
		panic(err)
	}
	return t.Float64s()[0]
}

func (l *lab) parse(yaml string) *plan.Plan {
	l.t.Helper()
	plan, err := plan.Parse("lab.yaml", []byte(yaml), l.dir, l, plan.Overrides{})
	if err != nil {
		l.t.Fatal(err)
	}
	return plan
}

func (l *lab) engine(plan *plan.Plan, s *store.Store) *pipeline.Engine {
	l.t.Helper()
	devices, err := device.Parse(l.devices)
	if err != nil {
		l.t.Fatal(err)
	}
	force, err := plan.Selector(l.force)
	if err != nil {
		l.t.Fatal(err)
	}
	return &pipeline.Engine{
		Store: s, Devices: devices, Batch: l.batch, Chunk: l.chunk, FailFast: l.failFast, Force: force,
		Compare: l.compare, SameDevice: l.same,
		MadeBy:   func(class string) string { return class + l.machine },
		Compiler: func() string { return l.build },
		OnEvent:  func(ev pipeline.Event) { l.events = append(l.events, ev) },
	}
}

// run loads an experiment and executes it; load and set-up errors end the test, and so does a run that gets
// stuck.
func (l *lab) run(yaml string) (*pipeline.Result, error) {
	l.t.Helper()
	plan := l.parse(yaml)
	s, err := store.Open(filepath.Join(l.dir, "store"), store.Options{Hook: l.hook})
	if err != nil {
		return nil, err
	}
	l.ran, l.events = map[string]int{}, nil
	ctx, cancel := context.WithTimeoutCause(l.ctx, time.Minute, errors.New("the run got stuck"))
	defer cancel()
	res, err := l.engine(plan, s).Run(ctx, plan, l.drain)
	if err == nil {
		err = s.Close()
	}
	return res, err
}

// outlook tells what a run would do.
func (l *lab) outlook(yaml string) (*plan.Plan, *pipeline.Outlook) {
	l.t.Helper()
	plan := l.parse(yaml)
	s, err := store.Open(filepath.Join(l.dir, "store"), store.Options{ReadOnly: true})
	if err != nil {
		l.t.Fatal(err)
	}
	defer s.Close()
	o, err := l.engine(plan, s).Plan(l.ctx, plan)
	if err != nil {
		l.t.Fatal(err)
	}
	return plan, o
}

// said returns the reasons of events of a kind, "cell: reason".
func (l *lab) said(kind pipeline.EventKind) (list []string) {
	for _, e := range l.events {
		if e.Kind == kind {
			list = append(list, e.Cell+": "+e.Reason)
		}
	}
	return list
}

// find returns the one cell that a name fits.
func find(p *plan.Plan, name string) (*plan.Cell, error) {
	cells, err := p.Fitting(name)
	if err == nil && len(cells) > 1 {
		err = fmt.Errorf("%q fits %d cells", name, len(cells))
	}
	if err != nil {
		return nil, err
	}
	return cells[0], nil
}

// fate tells how a cell ended, and why.
func ended(t *testing.T, res *pipeline.Result, cell string) (schedule.State, string) {
	t.Helper()
	c, err := find(res.Plan, cell)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Err(c); err != nil {
		return res.State(c), err.Error()
	}
	return res.State(c), ""
}

func (l *lab) mustRun(yaml string) *pipeline.Result {
	l.t.Helper()
	res, err := l.run(yaml)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(res.Close)
	for _, c := range res.Plan.Cells {
		if state := res.State(c); state.Finished() && !state.OK() {
			l.t.Fatalf("%s: %v", c, res.Err(c))
		}
	}
	return res
}

// text returns what a cell's first port holds, as text.
func (l *lab) text(res *pipeline.Result, cell string) string {
	l.t.Helper()
	c, err := find(res.Plan, cell)
	if err != nil {
		l.t.Fatal(err)
	}
	d, err := res.Data(context.Background(), c, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	var b strings.Builder
	for i := range d.Items.Len() {
		p, err := d.Load(i)
		if err != nil {
			l.t.Fatal(err)
		}
		if c.Stage.Outputs[0].Type.Form == stages.FormTensor {
			item, err := d.Items.At(i)
			if err != nil {
				l.t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s=%g ", item.ID, first(p))
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
			l.t.Errorf("%s: %s executed %d items, want %d (all: %v)", what, counts[i], got, counts[i+1],
				l.ran)
		}
	}
}
