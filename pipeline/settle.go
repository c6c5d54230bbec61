package pipeline

import (
	"errors"
	"time"

	"github.com/runexp/runexp/pipeline/schedule"
)

// settleDue settles the cells whose inputs have all finished, and those that become due by it.
func (r *run) settleDue() {
	for r.ctx.Err() == nil {
		c := r.schedule.Due()
		if c == nil {
			return
		}
		r.settle(r.nodes[c.Index])
	}
}

// settle decides what becomes of a cell whose inputs have all finished.
func (r *run) settle(n *node) {
	if err := r.postponement(n); err != nil {
		n.err = err
		r.finish(n, schedule.Postponed)
		return
	}
	if by := r.schedule.Blocker(n.Cell); by != nil {
		n.err = blockedBy(by, r.nodes[by.Index].err)
		r.finish(n, schedule.Blocked)
		return
	}
	if n.live = r.schedule.Live(n.Cell); !n.looked && n.err == nil {
		n.err = r.own.mend(func() error { return r.resolve(n) })
	}
	n.looked = false
	switch {
	case r.ctx.Err() != nil:
	case errors.Is(n.err, errNotCompiled):
		n.err = nil
		r.schedule.Uncompiled(n.Cell)
	case n.err != nil:
		r.finish(n, schedule.Failed)
	case n.hasResults():
		r.finish(n, schedule.Cached)
	default:
		r.schedule.Missing(n.Cell, n.key)
	}
}

// finish says how n ended.
func (r *run) finish(n *node, as schedule.State) {
	e := Event{Cell: n.String(), Step: n.Step.Name}
	switch as {
	case schedule.Cached:
		e.Kind = CellCached
		// Without it, why would compare with an older state; nothing else is lost.
		_ = r.store.Seen(r.plan.Name, e.Cell, n.key)
	case schedule.Failed:
		e.Kind, e.Err = CellFailed, n.err
		r.failed = true
		r.stopped = r.stopped || r.FailFast
	case schedule.Blocked:
		e.Kind, e.Reason = CellBlocked, n.err.(*blockedError).by.String()
	}
	if as != schedule.Done && as != schedule.Postponed { // which was told, and which isn't the run's
		r.emit(e)
	}
	for _, c := range r.schedule.Finished(n.Cell, as) {
		r.nodes[c.Index].forget()
	}
}

// finishJob finishes the members of a job. err is about the job as a whole.
func (r *run) finishJob(j *job, err error) {
	for _, m := range j.members {
		r.reportWarnings(m.node)
		if err != nil {
			m.fail(err)
		}
		e := m.failure()
		b, isBlocked := errors.AsType[*blockedError](e)
		later, isPostponed := errors.AsType[*postponedError](e)
		switch {
		case r.ctx.Err() != nil && e != nil: // stopped in the middle, not failed
		case isBlocked && !r.schedule.Needs(m.Cell):
			r.schedule.Again(m.Cell) // without what failed, when all it reads has finished
		case e == nil && m.cut:
			r.finish(m.node, schedule.Cached)
		case e == nil:
			r.reportForced(m.node)
			e := eventOf(CellDone, m.Cell)
			e.Total, e.Reason, e.Took = j.total, m.reason, time.Since(j.start)
			r.emit(e)
			r.finish(m.node, schedule.Done)
		case isPostponed:
			m.node.err = later
			r.finish(m.node, schedule.Postponed)
		case isBlocked:
			m.node.err = b
			r.finish(m.node, schedule.Blocked)
		default:
			m.node.err = e
			r.finish(m.node, schedule.Failed)
		}
	}
}
