package pipeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
)

// schedule starts work until there is none left. Only this goroutine touches the states of cells and the
// queues.
func (r *run) schedule(drain <-chan struct{}) {
	defer r.workers.Wait()
	r.settleDue()
	planned := Event{Kind: Planned, Total: len(r.nodes)}
	for _, n := range r.nodes {
		if n.state == cached {
			planned.Done++
		}
	}
	r.emit(planned)
	began := time.Now()
	r.foresee(began) // while nothing runs: it asks for definitions that aren't final yet
	for ; ; r.foresee(began) {
		r.stopped = r.stopped || r.ctx.Err() != nil
		r.settleDue()
		for !r.stopped && r.startOne() {
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

// startOne starts one piece of work if there is one and a slot for it: first what finds a key, then what is
// begun, then what is new.
func (r *run) startOne() bool {
	if len(r.unknown) > 0 {
		if w := r.free(r.host); w != nil {
			r.startCompiling(w)
			return true
		}
	}
	for i, j := range r.tasks {
		slots := r.host
		if j.device() {
			slots = r.devices
		}
		if w := r.free(slots); w != nil {
			r.startChunk(w, i)
			return true
		}
	}
	w := r.free(r.host)
	if w == nil {
		return false
	}
	if j := r.nextJob(); j != nil {
		r.startJob(w, j)
		return true
	}
	w.giveBack()
	return false
}

// free returns a worker on a free slot, nil if there is none.
func (r *run) free(slots chan *device.Slot) *worker {
	for {
		select {
		case slot := <-slots:
			if !slot.Lost() {
				return &worker{run: r, ctx: r.ctx, slot: slot, home: slots}
			}
		default:
			return nil
		}
	}
}

// launch has work done by w, and then next by the scheduling goroutine.
func (r *run) launch(w *worker, work func() error, next func(err error)) {
	r.active++
	r.workers.Go(func() {
		var err error
		func() {
			defer plan.Catch(&err)
			err = work()
		}()
		w.giveBack()
		r.events <- func() { r.active--; next(err) }
	})
}

// wake makes the scheduling goroutine look again at what it can start.
func (r *run) wake() {
	select {
	case r.events <- func() {}:
	default: // it has events to wake it already, or has ended
	}
}

// startCompiling compiles the program of a cell. Then the cell has a key, and is due again.
func (r *run) startCompiling(w *worker) {
	n := r.unknown[0]
	r.unknown, r.compiles = r.unknown[1:], append(r.compiles, n)
	compile := func() error { return r.compile(r.ctx, n) }
	r.launch(w, func() error { return w.mend(compile) }, func(err error) {
		r.compiles = slices.DeleteFunc(r.compiles, func(c *node) bool { return c == n })
		n.err = err
		r.due = append(r.due, n)
	})
}

// startJob opens a job. What needs no device and is a single chunk is done at once; the rest goes to the
// queue.
func (r *run) startJob(w *worker, j *job) {
	j.start = time.Now()
	queue := false
	r.launch(w, func() error {
		w.open(j)
		if queue = len(j.chunks) > 1 || len(j.chunks) == 1 && j.device(); queue {
			return nil
		}
		for _, chunk := range j.chunks {
			r.tellStarted(j)
			w.compute(j, chunk, func() {})
		}
		w.closeJob(j)
		return nil
	}, func(err error) {
		if queue && err == nil {
			r.enqueue(j)
		} else {
			r.finishJob(j, err)
		}
	})
}

func (r *run) enqueue(j *job) {
	if j.device() {
		items := 0
		for _, m := range j.members {
			items = max(items, len(m.known))
		}
		r.openDevices(cmp.Or(items, len(r.Devices))) // a Whole stage has none
	}
	r.queue(j)
}

// queue makes j one of those with chunks to start.
func (r *run) queue(j *job) {
	r.tasks = insert(r.tasks, j, func(j *job) int { return j.members[0].Index })
}

// insert puts x into a list that is sorted by index.
func insert[T any](list []T, x T, index func(T) int) []T {
	i, _ := slices.BinarySearchFunc(list, x, func(a, b T) int { return cmp.Compare(index(a), index(b)) })
	return slices.Insert(list, i, x)
}

func (r *run) tellStarted(j *job) {
	for _, m := range j.members {
		e := eventOf(CellStarted, m.Cell)
		e.Total = j.total
		r.emit(e)
	}
}

// startChunk starts the next chunk of the i-th job in the queue. While its results are stored, the slot
// computes the job's next: as many are stored at a time as there are devices and no more, so that a slow disk
// doesn't fill the memory.
func (r *run) startChunk(w *worker, i int) {
	j := r.tasks[i]
	if j.next == 0 {
		j.start = time.Now()
		r.tellStarted(j)
	}
	from := j.next
	chunk, taken := j.take(cap(w.home))
	more := j.next < len(j.chunks)
	if !more {
		r.tasks = slices.Delete(r.tasks, i, i+1)
	}
	last := false
	r.launch(w, func() (err error) {
		func() {
			defer plan.Catch(&err)
			w.compute(j, chunk, func() {
				if more && !j.onProbation || j.mayCompareLater() && !w.away {
					w.makeRoom(j.onProbation)
				}
			})
		}()
		if w.lost != nil {
			w.leaveRoom()
			w.lose(w.lost)
			return nil
		}
		if last = j.left.Add(int32(-taken)) == 0; last {
			w.closeJob(j)
		}
		w.leaveRoom()
		return err
	}, func(err error) {
		switch {
		case last:
			r.finishJob(j, err)
		case w.lost != nil:
			r.putBack(j, j.chunks[from:from+taken])
		case err != nil:
			j.members[0].fail(err)
		}
	})
}

// makeRoom gives w's slot back while what it computed is stored. If somebody may wait for that, it keeps the
// slot rather than wait until there is room.
func (w *worker) makeRoom(awaited bool) {
	if awaited {
		select {
		case w.storing <- struct{}{}:
		default:
			return
		}
	} else {
		w.storing <- struct{}{}
	}
	w.room = true
	w.giveBack()
	w.wake()
}

// putBack puts chunks of a job, whose device was lost, back into the queue.
func (r *run) putBack(j *job, chunks [][]int32) {
	if j.next == len(j.chunks) { // it had left the queue
		r.queue(j)
	}
	j.chunks = append(j.chunks, chunks...)
}
