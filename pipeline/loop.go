package pipeline

import (
	"time"

	"github.com/runexp/runexp/pipeline/execute"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/schedule"
)

// loop works through the schedule until nothing is left to do. Only this goroutine uses the schedule.
func (r *run) loop(drain <-chan struct{}) {
	defer r.workers.Wait()
	r.settleDue()
	r.show(Event{Kind: Planned, Total: len(r.plan.Cells), Done: r.cached()})
	began := time.Now()
	for {
		r.foresee(began)
		r.stopped = r.stopped || r.executor.Context().Err() != nil
		r.settleDue()
		for !r.stopped && r.startOne() {
		}
		if r.schedule.Idle() {
			return
		}
		select {
		case f := <-r.todo:
			f()
		case <-drain:
			drain = nil
			r.stopped = true
			r.show(Event{Kind: Draining})
		}
	}
}

// startOne starts one piece of work if there is one and a slot for it.
func (r *run) startOne() bool {
	host := r.executor.FreeHost()
	var onDevice *execute.Worker
	if r.schedule.WantsDevice() {
		onDevice = r.executor.FreeDevice()
	}
	work, ok := r.schedule.Next(host != nil, onDevice != nil)
	w := host
	if work.Piece != nil && work.Piece.Device {
		w = onDevice
	}
	for _, other := range []*execute.Worker{host, onDevice} {
		if other != nil && (!ok || other != w) {
			other.GiveBack()
		}
	}
	switch {
	case work.Compile != nil:
		r.startCompiling(w, work)
	case work.Open != nil:
		r.startJob(w, work)
	case work.Piece != nil:
		r.startPiece(w, work)
	}
	return ok
}

// launch makes w do a piece of work, and then the loop call next.
func (r *run) launch(w *execute.Worker, work schedule.Work, do func() error, next func(err error)) {
	r.workers.Go(func() {
		var err error
		func() {
			defer plan.Catch(&err)
			err = do()
		}()
		w.GiveBack()
		r.todo <- func() { r.schedule.Returned(work); next(err) }
	})
}

// startCompiling compiles the program of a cell. Then the cell has a key, and is due again.
func (r *run) startCompiling(w *execute.Worker, work schedule.Work) {
	n := r.resolver.Cells[work.Compile.Index]
	r.launch(w, work, func() error { return w.Compile(n) }, func(err error) { r.errs[n.Index] = err })
}

// startJob opens a job. A job that needs no device and is a single chunk is executed at once; the schedule
// hands out the chunks of others.
func (r *run) startJob(w *execute.Worker, work schedule.Work) {
	cells := make([]*resolve.Cell, len(work.Open.Cells))
	for i, c := range work.Open.Cells {
		cells[i] = r.resolver.Cells[c.Index]
		cells[i].SetLive(r.schedule.Live(c))
	}
	j := r.executor.NewJob(cells)
	pieces := false
	r.launch(w, work, func() error {
		w.Open(j)
		if pieces = j.Pieces(); !pieces {
			w.RunAll(j)
		}
		return nil
	}, func(err error) {
		if pieces && err == nil {
			r.executor.Begin(j)
			r.jobs[work.Open] = j
			r.schedule.Begin(work.Open)
			return
		}
		r.finishJob(j, err)
	})
}

// startPiece starts the next chunks of a job.
func (r *run) startPiece(w *execute.Worker, work schedule.Work) {
	j := r.jobs[work.Piece]
	piece := w.Next(j)
	if piece.Last {
		r.schedule.AllStarted(work.Piece)
	}
	var committed, lost bool
	r.launch(w, work, func() (err error) {
		committed, lost, err = w.Run(piece)
		return err
	}, func(err error) {
		switch {
		case committed:
			delete(r.jobs, work.Piece)
			r.finishJob(j, err)
		case lost:
			if piece.PutBack() {
				r.schedule.Begin(work.Piece)
			}
		case err != nil:
			piece.Fail(err)
		}
	})
}

// Committed implements [execute.Events].
func (r *run) Committed(n *resolve.Cell, spent execute.Speed) { r.speeds.remember(n, spent) }

// SlotFree implements [execute.Events]: the loop checks again what it can start.
func (r *run) SlotFree() {
	select {
	case r.todo <- func() {}:
	default: // it has other work, or has ended
	}
}
