package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// An Engine executes plans. None of its settings but SameDevice and Force has a
// part in what the results are.
type Engine struct {
	Store    *store.Store
	Devices  []stages.Device // at least one
	Batch    int             // the most passes handed to a device at once; 0 for 16
	Chunk    int             // items of one piece of work; 0 for 16, or fewer if devices had none
	FailFast bool            // stop at the first failure rather than finish the rest
	// MadeBy says what makes the results of a device class: the class, the CPU's
	// family, the runtime's version. It is recorded with them.
	MadeBy func(class string) string
	// Compiler names what compiles the programs of stages: the build of this command,
	// and the runtime. Digests of programs that another found are found anew. It may be
	// nil where no stage has any.
	Compiler func() string
	// SameDevice takes only results that MadeBy says were made alike.
	SameDevice bool
	// Force says which cells to execute whatever is stored.
	Force func(*plan.Cell) bool
	// OnEvent, if set, is told what happens, by one goroutine at a time.
	OnEvent func(Event)
	// DeviceBytes bounds the sessions kept on one device, a processor's slots together;
	// 0 for 4 GiB.
	DeviceBytes int64
}

// A Summary counts what a run did.
type Summary struct {
	Cells, Cached, Executed, Failed, Blocked int
	Items                                    int // executed; a Whole stage counts one
	Restored                                 int // cells computed again because the store lost bytes
	Took                                     time.Duration
}

// A run is one execution of a plan.
type run struct {
	*Engine
	*resolver
	ctx       context.Context
	host      chan *device.Slot
	own       *device.Slot      // of the scheduling goroutine
	devices   chan *device.Slot // empty until first is done
	first     sync.Once
	hostCache *device.Cache
	caches    []*device.Cache // all of them

	due      []*node       // cells all of whose inputs have finished
	ready    nodeHeap      // cells to execute
	tasks    []*job        // opened jobs with chunks left to start, by their first cell
	unknown  []*node       // cells whose programs have to be compiled to know their keys
	resolved func() []byte // the plan as text
	held     []*node       // cells whose bytes aren't kept, until their job is complete
	events   chan func()   // what workers want the scheduling goroutine to do
	storing  chan struct{} // holds one for each chunk that is stored while its slot computes
	active   int
	stopped  bool // nothing new starts
	failed   bool // some cell did

	keyed map[stages.Digest]*node // cells to execute, by key

	mu      sync.Mutex // guards what follows
	summary Summary
	forced  []Forced
}

// ErrDrained is the cause of a run that was asked to stop and finished what it
// had begun.
var ErrDrained = errors.New("stopped before everything was done")

// Run executes what is missing of plan. Closing drain lets what has begun finish
// and starts nothing new; cancelling ctx stops at once. The error is about the
// run as a whole; cells that failed are in the result.
func (e *Engine) Run(ctx context.Context, plan *plan.Plan, drain <-chan struct{}) (*Result, error) {
	began := time.Now()
	r := &run{
		Engine: e, resolver: e.newResolver(plan), ctx: ctx,
		events: make(chan func(), 64), keyed: map[stages.Digest]*node{},
	}
	if e.Batch == 0 {
		defaults := *e
		defaults.Batch = 16
		r.Engine = &defaults
	}
	if len(e.Devices) == 0 {
		return nil, errors.New("no device to compute on")
	}
	r.class = r.MadeBy(e.Devices[0].Class)
	r.openSlots()
	r.onCompile = func(n *node) { r.emit(Event{Kind: CellCompiling, Cell: n.String(), Step: n.Step.Name}) }
	r.lookAhead(ctx, drain)
	// Publishing wants it first of all; written beside the run it costs no time.
	r.resolved = sync.OnceValue(plan.Resolved)
	go func() {
		defer func() { _ = recover() }() // whoever wants it panics again
		r.resolved()
	}()
	r.value = r.data
	r.due = make([]*node, 0, len(r.nodes))
	for _, n := range r.nodes {
		if n.depth == 0 {
			r.due = append(r.due, n)
		}
	}
	r.settleDue()
	r.schedule(drain)
	for _, n := range r.nodes {
		switch n.state {
		case cached:
			r.summary.Cached++
		case done:
			r.summary.Executed++
		case failed:
			r.summary.Failed++
		case blocked:
			r.summary.Blocked++
		}
	}
	r.summary.Cells = len(r.nodes)
	r.summary.Took = time.Since(began)
	r.emit(Event{Kind: Finished, Done: r.summary.Cached + r.summary.Executed, Total: len(r.nodes), Took: r.summary.Took})
	res := &Result{run: r, Plan: plan, Summary: r.summary, Forced: r.forced}
	if ctx.Err() != nil {
		return res, context.Cause(ctx)
	}
	for _, n := range r.nodes {
		if !n.state.finished() && !r.failed {
			return res, ErrDrained
		}
	}
	return res, nil
}

// openSlots makes the host slots. They have their own cache, so that a device never waits on work that waits for a
// device.
func (r *run) openSlots() {
	r.hostCache = r.newCache()
	r.compiling = r.hostCache
	if slices.ContainsFunc(r.Devices, func(d stages.Device) bool { return d.Class == "cpu" }) {
		r.compiling = r.newCache()
	}
	r.own = r.hostCache.NewSlot(stages.Device{Class: "cpu", Threads: 1})
	r.host = make(chan *device.Slot, runtime.GOMAXPROCS(0))
	for i := range cap(r.host) {
		r.host <- r.hostCache.NewSlot(stages.Device{Class: "cpu", Index: i, Threads: 1})
	}
	r.devices = make(chan *device.Slot, len(r.Devices))
	r.storing = make(chan struct{}, len(r.Devices))
}

// openDevices makes the devices' slots, those of a processor with one cache, the first time that there is work for one,
// which has that many items.
func (r *run) openDevices(items int) {
	r.first.Do(func() {
		for _, d := range device.For(items, r.Devices) {
			cache := r.compiling
			if d.Class != "cpu" {
				cache = r.newCache()
			}
			r.devices <- cache.NewSlot(d)
		}
	})
}

func (r *run) newCache() *device.Cache {
	s := device.NewCache(cmp.Or(r.DeviceBytes, 4<<30))
	r.caches = append(r.caches, s)
	return s
}

func (r *run) closeSlots() {
	for _, s := range r.caches {
		s.Trim()
	}
}

// slotFor returns a slot on which n may compute: the one at hand, or a device
// when a stage that computes on one is needed by work that has none.
func (r *run) slotFor(ctx context.Context, n *node, have *device.Slot) (*device.Slot, func(), error) {
	if !n.Stage.Device {
		return have, func() {}, nil
	}
	return r.onDevice(ctx, have)
}

// onDevice returns the slot at hand if that's a device's, or waits for one. Work
// on a device never waits here, nor for work that does, so the wait ends.
func (r *run) onDevice(ctx context.Context, have *device.Slot) (*device.Slot, func(), error) {
	if !have.On(r.hostCache) {
		return have, func() {}, nil
	}
	r.openDevices(len(r.Devices))
	select {
	case s := <-r.devices:
		return s, func() { r.devices <- s; r.wake() }, nil
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

func (r *run) madeBy(n *node) string {
	if n.Stage.Device {
		return r.class
	}
	return ""
}

func (r *run) emit(e Event) {
	if r.OnEvent == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.OnEvent(e)
}

// warn tells the user something about a cell that isn't an error.
func (r *run) warn(c *plan.Cell, format string, args ...any) {
	r.emit(Event{Kind: Warning, Cell: c.String(), Step: c.Step.Name, Reason: fmt.Sprintf(format, args...)})
}

func (r *run) count(f func(*Summary)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.summary)
}

// post hands f to the scheduling goroutine, which takes such until no worker is
// left.
func (r *run) post(f func()) { r.events <- f }

// wake makes the scheduling goroutine look again at what it can start.
func (r *run) wake() {
	select {
	case r.events <- func() {}:
	default: // it has events to wake it already, or has ended
	}
}
