package pipeline

import (
	"cmp"
	"time"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/schedule"
)

// loop works through the schedule until nothing is left to do. Only this goroutine uses the schedule.
func (r *run) loop(drain <-chan struct{}) {
	defer r.workers.Wait()
	r.settleDue()
	planned := Event{Kind: Planned, Total: len(r.nodes)}
	for _, n := range r.nodes {
		if r.state(n) == schedule.Cached {
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
		if r.schedule.Idle() {
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

// startOne starts one piece of work if there is one and a slot for it.
func (r *run) startOne() bool {
	host, onDevice := r.free(r.host), r.free(r.devices)
	work, ok := r.schedule.Next(host != nil, onDevice != nil)
	w := host
	if work.Chunk != nil && work.Chunk.Device {
		w = onDevice
	}
	for _, other := range []*worker{host, onDevice} {
		if other != nil && (!ok || other != w) {
			other.giveBack()
		}
	}
	switch {
	case work.Compile != nil:
		r.startCompiling(w, work)
	case work.Open != nil:
		r.startJob(w, work)
	case work.Chunk != nil:
		r.startChunk(w, work)
	}
	return ok
}

func (r *run) state(n *node) schedule.State { return r.schedule.State(n.Cell) }

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

// launch has w do a piece of work, and then the loop next.
func (r *run) launch(w *worker, work schedule.Work, do func() error, next func(err error)) {
	r.workers.Go(func() {
		var err error
		func() {
			defer plan.Catch(&err)
			err = do()
		}()
		w.giveBack()
		r.events <- func() { r.schedule.Returned(work); next(err) }
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
func (r *run) startCompiling(w *worker, work schedule.Work) {
	n := r.nodes[work.Compile.Index]
	compile := func() error { return r.compile(r.ctx, n) }
	r.launch(w, work, func() error { return w.mend(compile) }, func(err error) { n.err = err })
}

// startJob opens a job. What needs no device and is a single chunk is done at once; the chunks of others are
// handed out by the schedule.
func (r *run) startJob(w *worker, work schedule.Work) {
	j := r.newJob(work.Open)
	j.start = time.Now()
	more := false
	r.launch(w, work, func() error {
		w.open(j)
		if more = len(j.chunks) > 1 || len(j.chunks) == 1 && j.device(); more {
			return nil
		}
		for _, chunk := range j.chunks {
			r.tellStarted(j)
			w.compute(j, chunk, func() {})
		}
		w.closeJob(j)
		return nil
	}, func(err error) {
		if more && err == nil {
			r.begin(j)
		} else {
			r.finishJob(j, err)
		}
	})
}

// begin has the schedule hand out the chunks of a job.
func (r *run) begin(j *job) {
	if j.device() {
		items := 0
		for _, m := range j.members {
			items = max(items, len(m.known))
		}
		r.openDevices(cmp.Or(items, len(r.Devices))) // a Whole stage has none
	}
	r.jobs[j.planned] = j
	r.schedule.Begin(j.planned)
}

func (r *run) tellStarted(j *job) {
	for _, m := range j.members {
		e := eventOf(CellStarted, m.Cell)
		e.Total = j.total
		r.emit(e)
	}
}

// startChunk starts the next chunk of a job. While its results are stored, the slot computes the job's next: as
// many are stored at a time as there are devices and no more, so that a slow disk doesn't fill the memory.
func (r *run) startChunk(w *worker, work schedule.Work) {
	j := r.jobs[work.Chunk]
	if j.next == 0 {
		j.start = time.Now()
		r.tellStarted(j)
	}
	from := j.next
	chunk, taken := j.take(cap(w.home))
	more := j.next < len(j.chunks)
	if !more {
		r.schedule.AllStarted(j.planned)
	}
	last := false
	r.launch(w, work, func() (err error) {
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
	if j.next == len(j.chunks) { // the schedule hands out no more of it
		r.schedule.Begin(j.planned)
	}
	j.chunks = append(j.chunks, chunks...)
}
