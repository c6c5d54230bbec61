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

	due     []*node     // cells all of whose inputs have finished
	ready   nodeHeap    // cells to execute
	tasks   []*job      // opened jobs with chunks left to start, by their first cell
	held    []*node     // cells whose bytes aren't kept, until their job is complete
	events  chan func() // what workers want the scheduling goroutine to do
	active  int
	stopped bool // nothing new starts
	failed  bool // some cell did

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
func (e *Engine) Run(ctx context.Context, plan *Plan, drain <-chan struct{}) (*Result, error) {
	began := time.Now()
	r := &run{
		Engine: e, resolver: newResolver(plan, e.Store), ctx: ctx,
		events: make(chan func(), 64), keyed: map[stages.Digest]*node{},
	}
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
func (r *run) valueOf(ctx context.Context, from *node, e Edge) (stages.Data, error) {
	return r.data(ctx, r.own, from, e)
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
	if r.isDevice(have) {
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

// warn tells the user something about a cell that isn't an error.
func (r *run) warn(c *Cell, format string, args ...any) {
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

// settleDue settles the cells whose inputs have all finished, and those whose
// last input that finishes. It goes round and round rather than deeper and deeper.
func (r *run) settleDue() {
	for len(r.due) > 0 && r.ctx.Err() == nil {
		n := r.due[len(r.due)-1]
		r.due = r.due[:len(r.due)-1]
		r.settle(n)
	}
}

// settle decides what becomes of a cell whose inputs have all finished.
func (r *run) settle(n *node) {
	n.settled = true
	if by := r.blocker(n); by != nil {
		n.err = blockedBy(by.Cell, by.err)
		r.finish(n, blocked)
		return
	}
	if n.state == waiting && n.err == nil {
		n.err = r.mending(r.ctx, r.own, func() error { return r.resolve(r.ctx, n) })
	}
	switch {
	case r.ctx.Err() != nil:
	case n.err != nil:
		r.finish(n, failed)
	case n.state == cached:
		// Without it, why would compare with an older state; nothing else is lost.
		_ = r.store.Seen(r.plan.Name, n.String(), n.key)
		r.finish(n, cached)
	case !n.Step.Keep && n.Stage.Relation != stages.Whole:
		r.held = append(r.held, n)
	default:
		if twin := r.keyed[n.key]; twin != nil && !twin.state.finished() {
			twin.twins = append(twin.twins, n)
			return
		}
		r.keyed[n.key] = n
		heap.Push(&r.ready, n)
	}
}

// finish marks n. What was waiting for it alone is due.
func (r *run) finish(n *node, s state) {
	n.state = s
	e := Event{Cell: n.String(), Step: n.Step.Name}
	switch s {
	case cached:
		e.Kind = CellCached
	case failed:
		e.Kind, e.Err = CellFailed, n.err
		r.failed = true
		r.stopped = r.stopped || r.FailFast
	case blocked:
		e.Kind, e.Reason = CellBlocked, n.err.(*blockedError).by.String()
	}
	if s != done { // which was told
		r.emit(e)
	}
	for _, d := range n.dependents {
		if d.wait--; d.wait == 0 && !d.settled {
			r.due = append(r.due, d)
		}
	}
	for _, twin := range n.twins {
		twin.state = waiting
		r.due = append(r.due, twin)
	}
	n.twins = nil
	r.release(n)
}

// release forgets what was loaded of the cells that n read, once all that read
// them have finished.
func (r *run) release(n *node) {
	for _, from := range r.edges(n) {
		if from.unread--; from.unread == 0 {
			from.forget()
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
		r.settleDue()
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
	if r.unhold(begin) {
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
			r.closeAll(slot, j)
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
				r.closeAll(slot, j)
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
func (r *run) closeAll(slot *device.Slot, j *job) {
	for i, m := range j.members {
		if m.failure() == nil {
			if err := r.closeMember(slot, j, i); err != nil {
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
func (r *run) closeMember(slot *device.Slot, j *job, i int) error {
	m := j.members[i]
	if err := r.blocking(m, m.in); err != nil {
		return err
	}
	if i > 0 {
		if err := r.mending(r.ctx, slot, func() error { return r.makeKey(r.ctx, m.node) }); err != nil {
			return err
		}
		if m.cut = r.lookUp(m.node); m.cut {
			return nil
		}
	}
	return r.close(m)
}

// settled finishes the members of a job. err is about the job as a whole.
func (r *run) settled(j *job, err error) {
	for i, m := range j.members {
		e := m.failure()
		if e == nil && err != nil {
			if e = err; i > 0 {
				e = &blockedError{j.members[0].Cell}
			}
		}
		var b *blockedError
		switch {
		case r.ctx.Err() != nil && e != nil:
			m.state = missing // stopped in the middle, not failed
		case e == nil && m.cut:
			_ = r.store.Seen(r.plan.Name, m.String(), m.key)
			r.finish(m.node, cached)
		case e == nil:
			r.reportForced(m.node)
			r.emit(Event{Kind: CellDone, Cell: m.String(), Step: m.Step.Name, Total: j.total, Reason: m.reason, Took: time.Since(j.start)})
			r.finish(m.node, done)
		case errors.As(e, &b):
			m.node.err = b
			r.finish(m.node, blocked)
		default:
			m.node.err = e
			r.finish(m.node, failed)
		}
	}
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
