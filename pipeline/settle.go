package pipeline

import (
	"errors"

	"github.com/runexp/runexp/pipeline/execute"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/schedule"
)

// settleDue settles the cells whose inputs have all finished, and those that become due by it.
func (r *run) settleDue() {
	for r.executor.Context().Err() == nil {
		c := r.schedule.Due()
		if c == nil {
			return
		}
		r.settle(r.resolver.Cells[c.Index])
	}
}

// settle decides the state of a cell whose inputs have all finished.
func (r *run) settle(n *resolve.Cell) {
	if err := r.postponement(n); err != nil {
		r.errs[n.Index] = err
		r.finish(n.Cell, schedule.Postponed)
		return
	}
	if by := r.schedule.Blocker(n.Cell); by != nil {
		r.errs[n.Index] = execute.BlockedBy(by, r.errs[by.Index])
		r.finish(n.Cell, schedule.Blocked)
		return
	}
	n.SetLive(r.schedule.Live(n.Cell))
	look := &r.looks[n.Index]
	if !look.Fresh && r.errs[n.Index] == nil { // otherwise it was looked up ahead, or can't be compiled
		*look = r.own.Look(n)
	}
	look.Fresh = false // if the cell is due again, the store has changed
	if look.Err != nil && r.errs[n.Index] == nil {
		r.errs[n.Index] = look.Err
	}
	switch err := r.errs[n.Index]; {
	case r.executor.Context().Err() != nil:
	case errors.Is(err, resolve.ErrNotCompiled):
		r.errs[n.Index] = nil
		r.schedule.Uncompiled(n.Cell)
	case err != nil:
		r.finish(n.Cell, schedule.Failed)
	case look.Found:
		r.finish(n.Cell, schedule.Cached)
	default:
		r.schedule.Missing(n.Cell, n.ID().Key)
	}
}

// finish ends a cell in a state.
func (r *run) finish(c *plan.Cell, as schedule.State) {
	e := eventOf(CellCached, c)
	switch err := r.errs[c.Index]; as {
	case schedule.Cached:
		// If it fails, why would compare with an older state; nothing else is lost.
		_ = r.engine.Store.Seen(r.plan.Name, e.Cell, r.resolver.Identity(c).Key)
	case schedule.Failed:
		e.Kind, e.Err = CellFailed, err
		r.failed = true
		r.stopped = r.stopped || r.engine.FailFast
	case schedule.Blocked:
		e.Kind, e.Reason = CellBlocked, err.(*execute.Blocked).By.String()
	}
	if as != schedule.Done && as != schedule.Postponed { // these were shown, or are another run's
		r.show(e)
	}
	for _, unread := range r.schedule.Finished(c, as) {
		r.resolver.Cells[unread.Index].Forget()
	}
}

// finishJob finishes the cells of a job. err is about the job as a whole.
func (r *run) finishJob(j *execute.Job, err error) {
	for _, end := range j.Endings(err) {
		n := end.Cell
		r.reportWarnings(n)
		if end.Look != nil {
			r.looks[n.Index] = *end.Look
		}
		blocked, isBlocked := errors.AsType[*execute.Blocked](end.Err)
		postponed, isPostponed := errors.AsType[*execute.Postponed](end.Err)
		switch {
		case r.executor.Context().Err() != nil && end.Err != nil: // stopped in the middle, not failed
		case isBlocked && !r.schedule.Needs(n.Cell):
			r.schedule.Again(n.Cell) // without the failed cell, when all its inputs have finished
		case end.Err == nil && r.looks[n.Index].Found:
			r.finish(n.Cell, schedule.Cached)
		case end.Err == nil:
			r.reportForced(n)
			e := eventOf(CellDone, n.Cell)
			e.Total, e.Reason, e.Took = end.Items, r.looks[n.Index].Reason, end.Took
			r.show(e)
			r.finish(n.Cell, schedule.Done)
		case isPostponed:
			r.errs[n.Index] = postponed
			r.finish(n.Cell, schedule.Postponed)
		case isBlocked:
			r.errs[n.Index] = blocked
			r.finish(n.Cell, schedule.Blocked)
		default:
			r.errs[n.Index] = end.Err
			r.finish(n.Cell, schedule.Failed)
		}
	}
}

// reportWarnings shows the warnings of a cell's stage.
func (r *run) reportWarnings(n *resolve.Cell) {
	once := func(text string) bool {
		_, known := r.warned.LoadOrStore(text, true)
		return !known
	}
	for _, text := range n.TakeWarnings(once) {
		r.Warn(n.Cell, text)
	}
}
