package pipeline

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
	"github.com/sourcegraph/conc/pool"
)

// schedule starts work until there is none left. Only this goroutine touches the
// states of cells and the queues.
func (r *run) schedule(drain <-chan struct{}) {
	wg := pool.New() // its goroutines, and their stacks, serve many small cells
	defer wg.Wait()
	r.emit(r.planned())
	for {
		if r.ctx.Err() != nil {
			r.stopped = true
		}
		r.settleDue()
		for !r.stopped && r.startOne(wg) {
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
func (r *run) startOne(wg *pool.Pool) bool {
	if len(r.unknown) > 0 {
		select {
		case slot := <-r.host:
			r.startCompiling(wg, slot)
			return true
		default:
		}
	}
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
	if len(r.ready) == 0 {
		return false
	}
	j := &job{members: r.together(r.ready[0])}
	if !begin(j) {
		return false
	}
	if len(j.members) == 1 { // as most are, and there may be many thousands
		heap.Pop(&r.ready)
		return true
	}
	r.ready = slices.DeleteFunc(r.ready, func(n *node) bool { return n.state == running })
	heap.Init(&r.ready)
	return true
}

// device reports whether a chunk of j computes on a device.
func (j *job) device() bool {
	return slices.ContainsFunc(j.members, func(m *member) bool { return m.Stage.Device })
}

// begin opens a job on a host slot. What needs no device and is a single chunk
// is done at once; the rest goes to the queue of tasks.
func (r *run) begin(wg *pool.Pool, j *job, slot *device.Slot) {
	r.active++
	for _, m := range j.members {
		m.settled, m.state = true, running
	}
	start := time.Now()
	j.start = start
	m := j.members[0]
	if m.Stage.Relation == stages.Whole && m.Stage.Device {
		r.host <- slot
		j.chunks = [][]int32{nil}
		j.left.Store(1)
		r.active--
		r.enqueue(j)
		return
	}
	wg.Go(func() {
		var err error
		var queue bool
		func() {
			defer plan.Catch(&err)
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
				r.flow(r.ctx, slot, j, j.chunks[0], nil)
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

// startCompiling compiles the program of a cell, which occupies slot meanwhile. Then the
// cell has a key, and is due again.
func (r *run) startCompiling(wg *pool.Pool, slot *device.Slot) {
	n := r.unknown[0]
	r.unknown = r.unknown[1:]
	r.active++
	wg.Go(func() {
		err := r.mending(r.ctx, slot, func() error { return r.compile(r.ctx, r.compileSlot(), n) })
		r.host <- slot
		r.post(func() {
			r.active--
			n.err = err
			r.due = append(r.due, n)
		})
	})
}

func (r *run) enqueue(j *job) {
	if j.device() {
		items := 0
		for _, m := range j.members {
			items = max(items, m.count)
		}
		r.openDevices(cmp.Or(items, len(r.Devices))) // a Whole stage has none
	}
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

// startChunk starts the next chunk of the i-th job in the queue. While its results are
// stored, the slot computes the job's next: as many are stored at a time as there are
// devices and no more, so that a slow disk doesn't fill the memory.
func (r *run) startChunk(wg *pool.Pool, i int, j *job, slot *device.Slot, pool chan *device.Slot) {
	chunk := j.chunks[j.next]
	j.next++
	more := j.next < len(j.chunks)
	if !more {
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
		givenBack := false // the slot
		func() {
			defer plan.Catch(&err)
			if m := j.members[0]; m.Stage.Relation == stages.Whole {
				err = r.all(r.ctx, slot, m.node)
				return
			}
			r.flow(r.ctx, slot, j, chunk, func() {
				if more {
					r.storing <- struct{}{}
					givenBack = true
					pool <- slot
					r.wake()
				}
			})
		}()
		if givenBack {
			<-r.storing
		}
		if err != nil {
			j.members[0].fail(err)
		}
		last := j.left.Add(-1) == 0
		if last && j.members[0].Stage.Relation != stages.Whole {
			if givenBack {
				slot, givenBack = <-pool, false
			}
			var bug error
			func() {
				defer plan.Catch(&bug)
				r.closeAll(slot, j)
			}()
			if bug != nil {
				j.members[0].fail(bug)
			}
		}
		if !givenBack {
			pool <- slot
		}
		r.post(func() {
			r.active--
			if last {
				r.settled(j, nil)
			}
		})
	})
}

// A nodeHeap orders cells so that what is deep in the plan comes first: what is
// begun is finished early, and little lies around.
type nodeHeap []*node

func (h nodeHeap) Len() int { return len(h) }

func (h nodeHeap) Less(i, j int) bool { return h[i].Index > h[j].Index }

func (h nodeHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *nodeHeap) Push(x any) { *h = append(*h, x.(*node)) }

func (h *nodeHeap) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return n
}
