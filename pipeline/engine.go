// Package pipeline is the engine: it turns a [plan.Plan] into results, executing what the store lacks. Its
// rooms are packages of their own: key, schedule, resolve, execute. Here is what holds them together:
//
//   - engine: an [Engine] runs a plan on devices and returns a [Result]; event: what happens meanwhile.
//   - loop, settle: the one goroutine that uses the schedule starts work on slots, and decides what becomes
//     of cells.
//   - result, forced: what a run found, and how forced cells compare with what was stored.
//   - outlook, why: what a run would do, and the reason.
//   - speed, estimate, forecast: how long cells took, how long they will take, and when a run ends.
//   - share, waves: what of an experiment one of many machines executes.
package pipeline

import (
	"context"
	"errors"
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

// An Engine executes plans. No result depends on its settings, except on SameDevice and Force, and on the
// class of its devices within the tolerances of stages.
type Engine struct {
	Store    *store.Store
	Devices  []stages.Device // at least one
	Batch    int             // passes handed to a device at once; 0 for 16, on a GPU for what is fastest
	Chunk    int             // items of one piece of work; 0 for 16, a GPU's 64, or fewer if devices had none
	FailFast bool            // stop at the first failure rather than finish the rest
	// MadeBy names what makes the results of a device class: the class, the CPU's family, the runtime's
	// version. It is recorded with them.
	MadeBy func(class string) string
	// Compiler names what compiles the programs of stages: the build of this command, and the runtime.
	// Digests of programs that another found are found anew. It may be nil where no stage has any.
	Compiler func() string
	// Compare has one in so many items of a stage that computes on a device other than the processor be
	// computed there, too: see [execute.Probation]. 0 stands for 20, a negative number for none.
	Compare int
	// SameDevice takes only results that were made by what MadeBy names.
	SameDevice bool
	// Force reports whether to execute a cell whatever is stored.
	Force func(*plan.Cell) bool
	// OnEvent, if set, is called by one goroutine at a time.
	OnEvent func(Event)
	// Share, if set, has a run execute that share of the items alone.
	Share *resolve.Share
	// Closing has a run execute no items: it makes the results of cells all of whose items are known,
	// executes Whole stages, and postpones the rest.
	Closing bool
	// DeviceBytes bounds the sessions kept on one device, a processor's slots together; 0 for 4 GiB.
	DeviceBytes int64
}

// A Summary counts what a run did.
type Summary struct {
	Cells, Cached, Executed, Failed, Blocked int
	Items                                    int // executed; a Whole stage counts one
	Restored                                 int // cells computed again because the store lost bytes
	Postponed                                int // cells that another run executes: see [resolve.Share]
	Took                                     time.Duration
}

// A run is one execution of a plan.
type run struct {
	*reporter
	engine   *Engine
	plan     *plan.Plan
	resolver *resolve.Resolver
	executor *execute.Executor
	speeds   *speeds
	workers  *pool.Pool    // its goroutines, and their stacks, serve many small cells
	todo     chan func()   // what workers have the loop do
	warned   sync.Map      // texts of warnings that no other cell repeats
	resolved func() []byte // the plan as text

	// What follows is the loop's alone.
	schedule *schedule.Schedule
	looks    []resolve.Look                 // by index: what was found of cells, see settle
	errs     []error                        // by index: why cells ended without results
	jobs     map[*schedule.Job]*execute.Job // that have begun
	own      *execute.Worker
	stopped  bool // nothing new is started
	failed   bool // a cell failed
	forecast forecast
	forced   []Forced
}

// ErrDrained is the cause of a run that was asked to stop and finished what it had begun.
var ErrDrained = errors.New("stopped before everything was done")

// Run executes what is missing of p. Closing drain lets what has begun finish and starts nothing new;
// cancelling ctx stops at once. The error is about the run as a whole; cells that failed are in the result.
func (e *Engine) Run(ctx context.Context, p *plan.Plan, drain <-chan struct{}) (*Result, error) {
	began := time.Now()
	if len(e.Devices) == 0 {
		return nil, errors.New("no device to compute on")
	}
	r := e.newRun(ctx, p)
	defer r.executor.End()
	r.lookAhead(ctx, drain)
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
	r.resolver.Class = e.MadeBy(e.Devices[0].Class)
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
		Store: e.Store, MadeBy: e.MadeBy, Devices: e.Devices[0].Class, Compiler: e.Compiler,
		SameDevice: e.SameDevice, Force: e.Force, Events: events,
	})
}

// lookAhead looks up what is stored, before anything is executed.
func (r *run) lookAhead(ctx context.Context, stop <-chan struct{}) {
	if r.engine.Share == nil {
		r.looks = r.resolver.LookAhead(ctx, stop)
		return
	}
	r.resolver.Narrow(ctx, r.engine.Share, stop)
	r.looks = make([]resolve.Look, len(r.plan.Cells))
	for i, n := range r.resolver.Cells {
		r.looks[i].Looked = n.HasResults()
		r.looks[i].Found = r.looks[i].Looked
	}
}

// summary counts what the run did.
func (r *run) summary() Summary {
	count := r.schedule.Count
	items, restored := r.executor.Executed()
	return Summary{
		Cells: len(r.plan.Cells), Cached: count(schedule.Cached), Executed: count(schedule.Done),
		Failed: count(schedule.Failed), Blocked: count(schedule.Blocked),
		Postponed: count(schedule.Postponed), Items: items, Restored: restored,
	}
}
