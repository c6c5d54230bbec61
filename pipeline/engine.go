// Package pipeline is the engine: it turns a [plan.Plan] into results, executing the cells that the store
// lacks. Its parts are packages: key, schedule, resolve, execute. This package connects them:
//
//   - engine: an [Engine] runs a plan on devices and returns a [Result]; event: the events of a run.
//   - loop, settle: the one goroutine that uses the schedule starts work on slots, and decides the states of
//     cells.
//   - result, forced: the results of a run, and the comparison of forced cells with their stored results.
//   - outlook, why: a prediction of a run, and the reasons.
//   - speed, estimate, forecast: the time that cells took, that they will take, and the end of a run; ways:
//     the time and the passes of an exact answer by two ways.
//   - share, waves: the part of an experiment that one of many machines executes.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runexp/runexp/pipeline/execute"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
	"github.com/sourcegraph/conc/pool"
)

// An Engine executes plans. No result depends on its settings, except on SameDevice and Force, and, within
// the tolerances of stages, on the class of its devices.
type Engine struct {
	Store    *store.Store
	Devices  []stages.Device // at least one
	Batch    int             // passes given to a device at once; 0 for 16, on a GPU for the fastest number
	Chunk    int             // items of one chunk; 0 for 16, on a GPU 64, or fewer if devices would idle
	FailFast bool            // stop at the first failure instead of finishing the other cells
	// MadeBy identifies the maker of a device class's results: the class, the CPU's family, the runtime's
	// version. It is recorded with them.
	MadeBy func(class string) string
	// Compiler identifies the compiler of stages' programs: the build of this command, and the runtime.
	// Digests of programs by another compiler are computed again. It may be nil if no stage has a program.
	Compiler func() string
	// Has, if set, returns nil if the devices compute in a precision, or else what they lack.
	Has func(precision string) error
	// Compare is the N of the fraction 1/N of a stage's items that a processor computes, too, if another
	// device computes the stage: see [execute.Probation]. 0 stands for 20, a negative number for none.
	Compare int
	// SameDevice uses only results of the maker that MadeBy identifies.
	SameDevice bool
	// Force reports whether to execute a cell regardless of stored results.
	Force func(*plan.Cell) bool
	// OnEvent, if set, is called by one goroutine at a time.
	OnEvent func(Event)
	// Share, if set, restricts a run to that share of the items.
	Share *resolve.Share
	// Closing makes a run execute no items: it makes the results of cells all of whose items are known,
	// executes Whole stages, and postpones the others.
	Closing bool
	// DeviceBytes bounds the sessions kept on one device, a processor's slots together; 0 for 4 GiB.
	DeviceBytes int64
}

// A Summary counts the work of a run.
type Summary struct {
	Cells, Cached, Executed, Failed, Blocked int
	Items                                    int // executed; a Whole stage counts as one
	Restored                                 int // cells computed again because the store had lost bytes
	Postponed                                int // cells that another run executes: see [resolve.Share]
	Took                                     time.Duration
	Programs                                 int           // compiled
	Compiling                                time.Duration // on average of a slot
}

// A run is one execution of a plan.
type run struct {
	*reporter
	engine   *Engine
	plan     *plan.Plan
	resolver *resolve.Resolver
	executor *execute.Executor
	speeds   *speeds
	workers  *pool.Pool    // its goroutines, with their stacks, are reused for many small cells
	todo     chan func()   // functions that workers pass to the loop
	warned   sync.Map      // texts of warnings that no other cell repeats
	resolved func() []byte // the plan as text

	// Only the loop uses the fields below.
	schedule *schedule.Schedule
	looks    []resolve.Look                 // by index: the findings about cells, see settle
	errs     []error                        // by index: why cells ended without results
	jobs     map[*schedule.Job]*execute.Job // open jobs
	own      *execute.Worker
	stopped  bool // nothing new is started
	failed   bool // a cell failed
	forecast forecast
	forced   []Forced
}

// ErrDrained is the error of a run that was asked to stop and finished the work that it had begun.
var ErrDrained = errors.New("stopped before everything was done")

// Run executes the missing cells of p. When drain is closed, running work is finished and nothing new is
// started; when ctx is cancelled, the run stops at once. The error is about the run as a whole; failed
// cells are in the result.
func (e *Engine) Run(ctx context.Context, p *plan.Plan, drain <-chan struct{}) (*Result, error) {
	began := time.Now()
	if len(e.Devices) == 0 {
		return nil, errors.New("no device to compute on")
	}
	r := e.newRun(ctx, p)
	defer r.executor.End()
	r.lookAhead(ctx, drain)
	if err := r.lacks(); err != nil {
		return nil, err
	}
	go func() { // publishing needs it first; made during the run it costs no time
		defer func() { _ = recover() }() // the panic resurfaces on the next call
		r.resolved()
	}()
	r.schedule = schedule.New(p.Cells, r.resolver.Keys.Calls)
	r.loop(drain)
	s := r.summary()
	s.Took = time.Since(began)
	r.show(Event{Kind: Finished, Done: s.Cached + s.Executed, Total: len(p.Cells), Took: s.Took})
	res := &Result{run: r, Plan: p, Summary: s, Forced: r.forced, Probation: r.executor.Probation()}
	if ctx := r.executor.Context(); ctx.Err() != nil {
		return res, context.Cause(ctx)
	}
	finished := s.Cached + s.Executed + s.Failed + s.Blocked + s.Postponed
	if !r.failed && finished < s.Cells {
		return res, ErrDrained
	}
	return res, nil
}

func (e *Engine) newRun(ctx context.Context, p *plan.Plan) *run {
	r := &run{
		reporter: &reporter{on: e.OnEvent}, engine: e, plan: p, workers: pool.New(),
		todo: make(chan func(), 64), errs: make([]error, len(p.Cells)),
		jobs: map[*schedule.Job]*execute.Job{}, resolved: sync.OnceValue(p.Resolved),
	}
	r.resolver = e.newResolver(p, r.reporter)
	r.resolver.MadeHere = e.MadeBy(e.Devices[0].Class)
	r.speeds = newSpeeds(r.resolver)
	r.executor = execute.New(ctx, execute.Config{
		Resolver: r.resolver, Store: e.Store, Devices: e.Devices, Batch: e.Batch, Chunk: e.Chunk,
		Compare: e.Compare, DeviceBytes: e.DeviceBytes, KnownOnly: e.Closing, Events: r,
	})
	r.own = r.executor.Own()
	return r
}

func (e *Engine) newResolver(p *plan.Plan, events resolve.Events) *resolve.Resolver {
	return resolve.New(p, resolve.Options{
		Store: e.Store, MadeBy: e.MadeBy, Class: e.Devices[0].Class, Compiler: e.Compiler,
		SameDevice: e.SameDevice, Force: e.Force, Events: events,
	})
}

// lookAhead looks up stored results, before anything is executed.
func (r *run) lookAhead(ctx context.Context, stop <-chan struct{}) {
	if r.engine.Share == nil {
		r.looks = r.resolver.LookAhead(ctx, stop)
		return
	}
	r.resolver.Narrow(ctx, r.engine.Share, stop)
	r.looks = make([]resolve.Look, len(r.plan.Cells))
	for i, n := range r.resolver.Cells {
		found := n.HasResults()
		r.looks[i] = resolve.Look{Fresh: found, Found: found}
	}
}

// lacks returns what the devices lack for cells that aren't stored: nothing is to be computed first for cells
// that can't be. One that has finished before may find its inputs unchanged, and need no device.
func (r *run) lacks() error {
	if r.engine.Has == nil || r.engine.Closing {
		return nil
	}
	steps := map[string][]string{}
	for _, n := range r.resolver.Cells {
		p, name := stages.PrecisionOf(n.Params), n.Step.Name
		if p == stages.Float32 || n.HasResults() || slices.Contains(steps[p], name) {
			continue
		}
		a, before := r.engine.Store.Latest(r.plan.Name, n.String())
		d, err := r.speeds.definition(n.Cell)
		if !before || err != nil || a.Definition != d || r.resolver.Forced(n.Cell) {
			steps[p] = append(steps[p], name)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(steps)) {
		if err := r.engine.Has(p); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(steps[p], ", "), err)
		}
	}
	return nil
}

// cached counts the cells whose results an earlier run has made, also those that a run which was stopped
// hasn't settled.
func (r *run) cached() (count int) {
	for _, n := range r.resolver.Cells {
		state := r.schedule.State(n.Cell)
		if state == schedule.Cached || !state.Finished() && n.HasResults() {
			count++
		}
	}
	return count
}

// summary counts the work of the run.
func (r *run) summary() Summary {
	count := r.schedule.Count
	items, restored := r.executor.Executed()
	seconds, programs := r.speeds.compiled()
	compiling := time.Duration(seconds / float64(max(len(r.engine.Devices), 1)) * float64(time.Second))
	return Summary{
		Cells: len(r.plan.Cells), Cached: r.cached(), Executed: count(schedule.Done),
		Failed: count(schedule.Failed), Blocked: count(schedule.Blocked),
		Postponed: count(schedule.Postponed), Items: items, Restored: restored,
		Programs: programs, Compiling: compiling,
	}
}
