package pipeline

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
	"github.com/sourcegraph/conc"
)

// An Engine executes plans. None of its settings but SameDevice and Force has a
// part in what the results are.
type Engine struct {
	Store    *store.Store
	Devices  []stages.Device // at least one
	Batch    int             // passes handed to a device at once; 0 for 16
	Chunk    int             // items of one piece of work; 0 for 16
	FailFast bool            // stop at the first failure rather than finish the rest
	// MadeBy says what makes the results of a device class: the class, the CPU's
	// family, the runtime's version. It is recorded with them.
	MadeBy func(class string) string
	// SameDevice takes only results that MadeBy says were made alike.
	SameDevice bool
	// Force says which cells to execute whatever is stored.
	Force func(*Cell) bool
	// OnEvent, if set, is told what happens, by one goroutine at a time.
	OnEvent func(Event)
	// SlotBytes bounds the sessions kept on one device; 0 for 4 GiB.
	SlotBytes int64
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
	ctx     context.Context
	host    chan *device.Slot
	own     *device.Slot // of the scheduling goroutine
	devices chan *device.Slot
	slots   []*device.Slot // all of them, devices first

	ready   nodeHeap    // cells to execute
	tasks   []*job      // opened jobs with chunks left to start, by their first cell
	held    []*node     // cells whose bytes aren't kept, until their job is complete
	events  chan func() // what workers want the scheduling goroutine to do
	active  int
	stopped bool // nothing new starts
	first   error

	mu      sync.Mutex // guards what follows
	summary Summary
	forced  []Forced
}

// Forced tells how a forced cell came out, compared with what was stored.
type Forced struct {
	Cell       string
	Reproduced bool
}

// ErrDrained is the cause of a run that was asked to stop and finished what it
// had begun.
var ErrDrained = errors.New("stopped before everything was done")

// Run executes what is missing of plan. Closing drain lets what has begun finish
// and starts nothing new; cancelling ctx stops at once. The error is about the
// run as a whole; cells that failed are in the result.
func (e *Engine) Run(ctx context.Context, plan *Plan, drain <-chan struct{}) (*Result, error) {
	began := time.Now()
	r := &run{Engine: e, resolver: newResolver(plan, e.Store), ctx: ctx, events: make(chan func(), 64)}
	r.same, r.resolver.force = e.SameDevice, e.Force
	if e.Batch == 0 || e.Chunk == 0 {
		defaults := *e
		defaults.Batch, defaults.Chunk = cmp.Or(e.Batch, 16), cmp.Or(e.Chunk, 16)
		r.Engine = &defaults
	}
	if len(e.Devices) == 0 {
		return nil, errors.New("no device to compute on")
	}
	r.class = r.MadeBy(e.Devices[0].Class)
	r.openSlots()
	r.lookAhead(ctx)
	r.value = r.valueOf
	for _, n := range r.nodes {
		if n.depth == 0 {
			r.settle(n)
		}
	}
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
		if !n.state.finished() && r.first == nil {
			return res, ErrDrained
		}
	}
	return res, nil
}

func (r *run) openSlots() {
	limit := cmp.Or(r.SlotBytes, 4<<30)
	r.devices = make(chan *device.Slot, len(r.Devices))
	for _, d := range r.Devices {
		s := device.NewSlot(d, limit)
		r.devices <- s
		r.slots = append(r.slots, s)
	}
	r.own = device.NewSlot(stages.Device{Class: "cpu", Threads: 1}, limit)
	r.slots = append(r.slots, r.own)
	k := runtime.GOMAXPROCS(0)
	r.host = make(chan *device.Slot, k)
	for i := range k {
		s := device.NewSlot(stages.Device{Class: "cpu", Index: i, Threads: 1}, limit)
		r.host <- s
		r.slots = append(r.slots, s)
	}
}

func (r *run) closeSlots() {
	for _, s := range r.slots {
		s.Clear()
	}
}

// valueOf gets the value behind an edge for a stage that compiles it.
func (r *run) valueOf(ctx context.Context, from *node, e Edge) (d stages.Data, err error) {
	f, err := r.factsOf(ctx, r.own, from, e.Port)
	if err != nil {
		return d, err
	}
	return r.data(ctx, r.own, from, e, f, false), nil
}

// slotFor returns a slot on which n may compute: the one at hand, or a device
// when a stage that computes on one is needed by work that has none. Work on
// devices never waits here, so the wait ends.
func (r *run) slotFor(ctx context.Context, n *node, have *device.Slot) (*device.Slot, func(), error) {
	if !n.Stage.Device || r.isDevice(have) {
		return have, func() {}, nil
	}
	select {
	case s := <-r.devices:
		return s, func() { r.devices <- s; r.wake() }, nil
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

func (r *run) isDevice(s *device.Slot) bool {
	return slices.Contains(r.slots[:len(r.Devices)], s)
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

// settle decides what becomes of a cell whose inputs have all finished.
func (r *run) settle(n *node) {
	n.settled = true
	for p := range n.Inputs {
		for _, e := range n.Inputs[p].Edges {
			from := r.nodes[e.From.Index]
			if !from.state.ok() && !n.Step.Drop {
				n.err = errBlocked
				r.finish(n, blocked, from.String())
				return
			}
		}
	}
	if n.state == waiting && n.err == nil {
		n.err = r.resolve(r.ctx, n)
	}
	if n.err != nil {
		r.finish(n, failed, "")
		return
	}
	if n.state == cached {
		r.finish(n, cached, "")
		return
	}
	if !n.Step.Keep && n.Stage.Relation != stages.Whole {
		r.held = append(r.held, n)
		return
	}
	heap.Push(&r.ready, n)
}

// finish marks n and settles what was waiting for it alone.
func (r *run) finish(n *node, s state, why string) {
	n.state = s
	switch s {
	case cached:
		r.emit(Event{Kind: CellCached, Cell: n.String(), Step: n.Step.Name})
	case failed:
		r.emit(Event{Kind: CellFailed, Cell: n.String(), Step: n.Step.Name, Err: n.err})
		if r.first == nil {
			r.first = fmt.Errorf("%s: %w", n.Cell, n.err)
		}
		r.stopped = r.stopped || r.FailFast
	case blocked:
		r.emit(Event{Kind: CellBlocked, Cell: n.String(), Step: n.Step.Name, Reason: why})
	}
	for _, d := range n.dependents {
		if d.wait--; d.wait == 0 && !d.settled {
			r.settle(d)
		}
	}
	r.release(n)
}

// release forgets what was loaded of the cells that n read, once all that read
// them have finished.
func (r *run) release(n *node) {
	for p := range n.Inputs {
		for _, e := range n.Inputs[p].Edges {
			from := r.nodes[e.From.Index]
			if !slices.ContainsFunc(from.dependents, func(d *node) bool { return !d.state.finished() }) {
				from.forget()
			}
		}
	}
}

// schedule starts work until there is none left. Only this goroutine touches the
// states of cells and the queues.
func (r *run) schedule(drain <-chan struct{}) {
	var wg conc.WaitGroup
	defer wg.Wait()
	r.emit(r.planned())
	for {
		if r.ctx.Err() != nil {
			r.stopped = true
		}
		for !r.stopped && r.startOne(&wg) {
		}
		if r.active == 0 {
			return
		}
		select {
		case f := <-r.events:
			f()
		case <-drain:
			drain = nil
			r.stopped = true
			r.emit(Event{Kind: Draining})
		}
	}
}

func (r *run) planned() Event {
	e := Event{Kind: Planned, Total: len(r.nodes)}
	for _, n := range r.nodes {
		if n.state == cached {
			e.Done++
		}
	}
	return e
}

// startOne starts one piece of work if there is one and a slot for it.
func (r *run) startOne(wg *conc.WaitGroup) bool {
	for i, j := range r.tasks {
		pool := r.host
		if j.device() {
			pool = r.devices
		}
		select {
		case slot := <-pool:
			r.startChunk(wg, i, j, slot, pool)
			return true
		default:
		}
	}
	begin := func(j *job) bool {
		select {
		case slot := <-r.host:
			r.begin(wg, j, slot)
			return true
		default:
			return false
		}
	}
	if len(r.held) > 0 && r.unhold(begin) {
		return true
	}
	if len(r.ready) > 0 && begin(&job{members: []*member{{node: r.ready[0]}}}) {
		heap.Pop(&r.ready)
		return true
	}
	return false
}

// device reports whether a chunk of j computes on a device.
func (j *job) device() bool {
	return slices.ContainsFunc(j.members, func(m *member) bool { return m.Stage.Device })
}

// begin opens a job on a host slot. What needs no device and is a single chunk
// is done at once; the rest goes to the queue of tasks.
func (r *run) begin(wg *conc.WaitGroup, j *job, slot *device.Slot) {
	r.active++
	for _, m := range j.members {
		m.settled, m.state = true, running
	}
	start := time.Now()
	j.start = start
	m := j.members[0]
	if m.Stage.Relation == stages.Whole && m.Stage.Device {
		r.host <- slot
		j.chunks = [][]int{nil}
		j.left.Store(1)
		r.active--
		r.enqueue(j)
		return
	}
	wg.Go(func() {
		var err error
		var queue bool
		func() {
			defer catch(&err)
			slot.Begin()
			if m.Stage.Relation == stages.Whole {
				r.started(j)
				err = r.all(r.ctx, slot, m.node)
				return
			}
			if err = r.open(r.ctx, slot, j); err != nil {
				return
			}
			if len(j.chunks) == 1 && !j.device() {
				r.started(j)
				r.flow(r.ctx, slot, j, j.chunks[0])
			} else if len(j.chunks) > 0 {
				queue = true
				return
			}
			r.closeAll(j)
		}()
		r.host <- slot
		r.post(func() {
			r.active--
			if queue {
				r.enqueue(j)
				return
			}
			r.settled(j, err)
		})
	})
}

func (r *run) enqueue(j *job) {
	i, _ := slices.BinarySearchFunc(r.tasks, j, func(a, b *job) int {
		return cmp.Compare(a.members[0].Index, b.members[0].Index)
	})
	r.tasks = slices.Insert(r.tasks, i, j)
}

func (r *run) started(j *job) {
	for _, m := range j.members {
		r.emit(Event{Kind: CellStarted, Cell: m.String(), Step: m.Step.Name, Total: j.total})
	}
}

// startChunk starts the next chunk of the i-th job in the queue.
func (r *run) startChunk(wg *conc.WaitGroup, i int, j *job, slot *device.Slot, pool chan *device.Slot) {
	chunk := j.chunks[j.next]
	if j.next++; j.next == len(j.chunks) {
		r.tasks = slices.Delete(r.tasks, i, i+1)
	}
	if !j.started {
		j.started = true
		j.start = time.Now()
		r.started(j)
	}
	r.active++
	wg.Go(func() {
		var err error
		func() {
			defer catch(&err)
			slot.Begin()
			if m := j.members[0]; m.Stage.Relation == stages.Whole {
				err = r.all(r.ctx, slot, m.node)
			} else {
				r.flow(r.ctx, slot, j, chunk)
			}
		}()
		if err != nil {
			j.members[0].fail(err)
		}
		last := j.left.Add(-1) == 0
		if last && j.members[0].Stage.Relation != stages.Whole {
			var bug error
			func() {
				defer catch(&bug)
				r.closeAll(j)
			}()
			if bug != nil {
				j.members[0].fail(bug)
			}
		}
		pool <- slot
		r.post(func() {
			r.active--
			if last {
				r.settled(j, nil)
			}
		})
	})
}

// closeAll stores the results of the members that didn't fail.
func (r *run) closeAll(j *job) {
	for i, m := range j.members {
		if m.failure() == nil {
			if err := r.closeMember(j, i); err != nil {
				m.fail(err)
			}
		}
		m.mu.Lock()
		m.stored, m.items, m.keys, m.ports, m.in = nil, nil, nil, nil, nil
		m.mu.Unlock()
	}
}

// closeMember stores the results of j's i-th member. The key of a later member
// is known only now that the earlier ones have results.
func (r *run) closeMember(j *job, i int) error {
	m := j.members[i]
	if i > 0 {
		for p := range m.Inputs {
			for _, e := range m.Inputs[p].Edges {
				if before := m.in[r.nodes[e.From.Index]]; before != nil && before.failure() != nil {
					return errBlocked
				}
			}
		}
		if err := r.makeKey(r.ctx, m.node); err != nil {
			return err
		}
	}
	return r.close(m)
}

// settled finishes the members of a job. err is about the job as a whole.
func (r *run) settled(j *job, err error) {
	if err != nil {
		j.members[0].fail(err)
	}
	for _, m := range j.members {
		e := m.failure()
		switch {
		case e == nil && err == nil:
			r.reportForced(m.node)
			r.emit(Event{Kind: CellDone, Cell: m.String(), Step: m.Step.Name, Total: j.total, Reason: m.reason, Took: time.Since(j.start)})
			r.finish(m.node, done, "")
		case r.ctx.Err() != nil:
			m.state = missing // stopped in the middle, not failed
		case errors.Is(e, errBlocked) || e == nil:
			m.node.err = errBlocked
			r.finish(m.node, blocked, j.members[0].String())
		default:
			m.node.err = e
			r.finish(m.node, failed, "")
		}
	}
}

// reportForced compares a forced cell with what was stored.
func (r *run) reportForced(n *node) {
	if n.reason != forcedReason {
		return
	}
	if n.before == nil {
		return
	}
	before := &node{hit: *n.before}
	f := Forced{Cell: n.String(), Reproduced: true}
	for p := range n.Stage.Outputs {
		f.Reproduced = f.Reproduced && before.result(p) == n.result(p)
	}
	r.mu.Lock()
	r.forced = append(r.forced, f)
	r.mu.Unlock()
}

// A nodeHeap orders cells so that what is deep in the plan comes first: what is
// begun is finished early, and little lies around.
type nodeHeap []*node

func (h nodeHeap) Len() int           { return len(h) }
func (h nodeHeap) Less(i, j int) bool { return h[i].Index > h[j].Index }
func (h nodeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *nodeHeap) Push(x any)        { *h = append(*h, x.(*node)) }
func (h *nodeHeap) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return n
}
