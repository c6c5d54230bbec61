// Package pipeline is the engine: it turns a [plan.Plan] into results, executing what the store lacks. The
// way of the data through its files:
//
//   - engine: an [Engine] runs a plan on devices and returns a [Result]; event is what it tells meanwhile.
//   - node, sources, ids: a cell in a run, what it reads from outside, the names of its items.
//   - resolve, program: a cell whose inputs have results gets a key, and what is stored under it.
//   - hash, key, join: every key and what goes into it, in clear where somebody wants to see it.
//   - settle, schedule: the one goroutine that knows how far all cells are, and starts work on slots.
//   - fuse: the cells that one job executes together.
//   - share: what one of many machines executes of it, and what is left to the run that closes its wave.
//   - job, open, compute, commit: a job's phases open, compute, commit and close; inflight has the bytes that
//     live only in a job.
//   - probation: what devices other than the processor make is compared with what that makes.
//   - restore: what the store lost is computed again.
//   - result: what a run found, and how it compares with what was stored; package results publishes it.
//   - outlook, why: what a run would do, and the reason.
package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
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
	// computed there, too: see [Probation]. 0 stands for 20, a negative number for none.
	Compare int
	// SameDevice takes only results that were made by what MadeBy names.
	SameDevice bool
	// Force reports whether to execute a cell whatever is stored.
	Force func(*plan.Cell) bool
	// OnEvent, if set, is called by one goroutine at a time.
	OnEvent func(Event)
	// Share, if set, has a run execute that share of the items alone.
	Share *Share
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
	Postponed                                int // cells that aren't this run's to execute: see [Share]
	Took                                     time.Duration
}

// A run is one execution of a plan.
type run struct {
	*resolver
	batch     int
	ctx       context.Context // ended by the loss of the last device, too
	cancel    context.CancelCauseFunc
	workers   *pool.Pool        // its goroutines, and their stacks, serve many small cells
	host      chan *device.Slot // those that aren't at work; only the scheduling goroutine takes any
	own       *worker           // the scheduling goroutine
	devices   chan *device.Slot // empty until first is done
	first     sync.Once
	alive     atomic.Int32      // devices that weren't lost; processors count as one
	gone      chan struct{}     // closed when none is left
	checker   chan *device.Slot // of the processor, for what is compared with it
	trials    trials
	hostCache *device.Cache
	caches    []*device.Cache // all of them

	schedule *schedule.Schedule     // only its goroutine uses it, as the next
	jobs     map[*schedule.Job]*job // that have begun
	events   chan func()            // what workers have the scheduling goroutine do
	storing  chan struct{}          // holds one for each chunk that is stored while its slot computes
	told     sync.Map               // warnings that no other cell repeats
	stopped  bool                   // nothing new starts
	failed   bool                   // some cell did

	resolved func() []byte // the plan as text
	forecast forecast

	forced          []Forced
	items, restored atomic.Int64 // executed items, and cells computed again
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
	r := &run{
		resolver: e.newResolver(p), batch: cmp.Or(e.Batch, mostRows(e.Devices[0].Class)), workers: pool.New(),
		gone:   make(chan struct{}),
		events: make(chan func(), 64), jobs: map[*schedule.Job]*job{}, resolved: sync.OnceValue(p.Resolved),
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	r.class = r.MadeBy(e.Devices[0].Class)
	r.openSlots()
	if r.Share != nil {
		r.takeShare(ctx, drain)
	} else {
		r.lookAhead(ctx, drain)
	}
	go func() { // publishing needs it first; made during the run it costs no time
		defer func() { _ = recover() }() // the panic resurfaces on the next call
		r.resolved()
	}()
	r.schedule = schedule.New(p.Cells, p.Calls())
	r.loop(drain)
	var count [schedule.Postponed + 1]int
	unfinished := false
	for _, n := range r.nodes {
		count[r.state(n)]++
		unfinished = unfinished || !r.state(n).Finished()
	}
	s := Summary{
		Cells: len(r.nodes), Cached: count[schedule.Cached], Executed: count[schedule.Done],
		Failed: count[schedule.Failed], Blocked: count[schedule.Blocked],
		Postponed: count[schedule.Postponed],
		Items:     int(r.items.Load()), Restored: int(r.restored.Load()), Took: time.Since(began),
	}
	r.emit(Event{Kind: Finished, Done: s.Cached + s.Executed, Total: len(r.nodes), Took: s.Took})
	res := &Result{run: r, Plan: p, Summary: s, Forced: r.forced, Probation: r.trials.sum()}
	if r.ctx.Err() != nil {
		return res, context.Cause(r.ctx)
	}
	if !r.failed && unfinished {
		return res, ErrDrained
	}
	return res, nil
}

// openSlots makes the host slots. Host slots have their own cache, so that a device never waits on work that
// waits for a device.
func (r *run) openSlots() {
	r.hostCache = r.newCache()
	r.compiling = r.hostCache
	if slices.ContainsFunc(r.Devices, func(d stages.Device) bool { return d.Class == "cpu" }) {
		r.compiling = r.newCache()
	}
	r.own = &worker{run: r, ctx: r.ctx, slot: r.hostCache.NewSlot(stages.Device{Class: "cpu", Threads: 1})}
	r.host = make(chan *device.Slot, runtime.GOMAXPROCS(0))
	for i := range cap(r.host) {
		r.host <- r.hostCache.NewSlot(stages.Device{Class: "cpu", Index: i, Threads: 1})
	}
	r.devices = make(chan *device.Slot, device.Slots(r.Devices))
	r.storing = make(chan struct{}, cap(r.devices))
	r.checker = make(chan *device.Slot, 1)
	r.checker <- r.hostCache.NewSlot(stages.Device{Class: "cpu", Threads: runtime.GOMAXPROCS(0)})
}

// openDevices makes the devices' slots, those of a processor on one cache, the first time that there is work
// for one, which has that many items.
func (r *run) openDevices(items int) {
	r.first.Do(func() {
		caches := map[stages.Device]*device.Cache{}
		if r.alive.Store(1); r.Devices[0].Class != "cpu" {
			r.alive.Store(int32(len(r.Devices)))
		}
		for _, d := range device.For(items, r.Devices) {
			cache := r.compiling
			if d.Class != "cpu" {
				if cache = caches[d]; cache == nil {
					cache = r.newCache()
					if r.Batch == 0 {
						cache.Memory = found{r, d}
					}
					caches[d] = cache
				}
			}
			r.devices <- cache.NewSlot(d)
		}
	})
}

// found is what programs found out about a device, in the store, for runs on the same kind of device.
type found struct {
	*run
	device stages.Device
}

func (f found) key(what string) stages.Digest {
	h := newHasher("found")
	h.text(f.class)
	h.text(f.device.String())
	h.text(what)
	return h.sum()
}

// Recall implements [stages.Memory].
func (f found) Recall(what string) ([]byte, bool) { return f.store.Memo(f.key(what)) }

// Remember implements [stages.Memory].
func (f found) Remember(what string, b []byte) {
	_ = f.store.SetMemo(f.key(what), b) // without it, the next run finds it again
}

// mostRows returns how many passes are handed to a device of a class at once unless the user says: programs
// on a GPU may find that fewer are as good.
func mostRows(class string) int {
	if class == "cpu" {
		return 16
	}
	return 256
}

func (r *run) newCache() *device.Cache {
	s := device.NewCache(cmp.Or(r.DeviceBytes, 4<<30))
	r.caches = append(r.caches, s)
	return s
}

// A worker is a goroutine of a run at a slot.
type worker struct {
	*run
	ctx       context.Context
	slot      *device.Slot
	home      chan *device.Slot // where the slot goes when the work is done; nil if it's another worker's
	away      bool              // the slot is there
	comparing bool              // with the processor
	room      bool              // w has taken one of those who store what they computed
	lost      error             // the slot's device is lost: nothing is computed there any more
	like      string            // what makes results of stages with a device; the run's class if it's empty
	behalf    *worker           // who waits for w, and may hold a device
}

func (w *worker) giveBack() {
	if w.home != nil && !w.away {
		w.away = true
		w.home <- w.slot
	}
}

// reclaim waits for a slot if w gave its own back, because what it computed is being stored.
func (w *worker) reclaim() error {
	switch {
	case !w.away:
		return nil
	case w.comparing: // for which those with a slot may wait
		return errors.New("the store lost something meanwhile, which the next run computes again")
	}
	w.leaveRoom()
	slot, err := w.takeSlot(w.home)
	if err == nil {
		w.slot, w.away = slot, false
	}
	return err
}

// leaveRoom has another worker store.
func (w *worker) leaveRoom() {
	if w.room {
		w.room = false
		<-w.storing
	}
}

// takeSlot waits for a free slot.
func (w *worker) takeSlot(from chan *device.Slot) (*device.Slot, error) {
	for {
		select {
		case s := <-from:
			if !s.Lost() {
				return s, nil
			}
		case <-w.gone:
			return nil, errNoDevice
		case <-w.ctx.Done():
			return nil, context.Cause(w.ctx)
		}
	}
}

// onDevice has f compute n, which is finished, on a device: w's own, or one that it waits for. Work on a
// device never waits here, nor for work that does, so the wait ends. If the device is lost, f is called again
// on another. What the processor made is computed there, whatever the run's devices are.
func (w *worker) onDevice(n *node, f func(on *worker) error) error {
	if made := n.stored().MadeBy(); n.Stage.Device && made != w.class && made == w.MadeBy("cpu") {
		slot := w.hostCache.NewSlot(stages.Device{Class: "cpu", Threads: 1})
		return f(&worker{run: w.run, ctx: w.ctx, slot: slot, like: made, behalf: w})
	}
	if w.behalf != nil { // it may hold the only device
		return w.behalf.onDevice(n, f)
	}
	if !w.slot.On(w.hostCache) {
		if err := w.reclaim(); err != nil {
			return err
		}
		return f(&worker{run: w.run, ctx: w.ctx, slot: w.slot})
	}
	w.openDevices(len(w.Devices))
	for {
		slot, err := w.takeSlot(w.devices)
		if err != nil {
			return err
		}
		on := &worker{run: w.run, ctx: w.ctx, slot: slot, home: w.devices}
		if err = f(on); errors.Is(err, stages.ErrDeviceLost) {
			on.lose(err)
			continue
		}
		on.giveBack()
		w.wake()
		return err
	}
}

// errNoDevice is the error of work that needs a device when none is left.
var errNoDevice = errors.New("no device is left")

// lose takes w's device out of the run, with all its slots: takeSlot and free drop them. If it was the last,
// the run ends.
func (w *worker) lose(err error) {
	if w.lost = err; !w.slot.Lose() {
		return
	}
	func() { // its sessions are of no use; that they can't be closed says nothing new
		defer plan.Catch(new(error))
		_ = w.slot.Trim()
	}()
	d := w.slot.Device()
	if w.alive.Add(-1) > 0 {
		w.emit(Event{Kind: Warning, Device: d.String(), Reason: fmt.Sprintf(
			"%s is lost, and what it was computing goes to another device: %v", d, err)})
		return
	}
	w.cancel(fmt.Errorf("%w: %s: %v; what is done is stored, and the same command goes on from here",
		errNoDevice, d, err))
	close(w.gone)
}

func (w *worker) madeBy(n *node) string {
	if n.Stage.Device {
		return cmp.Or(w.like, w.class)
	}
	return ""
}
