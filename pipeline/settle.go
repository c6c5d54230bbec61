package pipeline

import (
	"errors"
	"time"
)

// settleDue settles the cells whose inputs have all finished, and, going round rather than deeper, those that
// become due by it.
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
	if err := r.postponement(n); err != nil {
		n.err = err
		r.finish(n, postponed)
		return
	}
	if by := r.blocker(n); by != nil {
		n.err = blockedBy(by.Cell, by.err)
		r.finish(n, blocked)
		return
	}
	if n.state == waiting && n.err == nil {
		n.err = r.own.mend(func() error { return r.resolve(n) })
	}
	switch {
	case r.ctx.Err() != nil:
	case errors.Is(n.err, errNotCompiled):
		n.err = nil
		r.unknown = append(r.unknown, n)
	case n.err != nil:
		r.finish(n, failed)
	case n.state == cached:
		r.finish(n, cached)
	case !n.kept():
		r.held = append(r.held, n)
	default:
		if twin := r.keyed[n.key]; twin != nil && !twin.state.finished() {
			twin.twins = append(twin.twins, n)
			return
		}
		r.keyed[n.key] = n
		r.ready = insert(r.ready, n, func(n *node) int { return -n.Index })
	}
}

// finish marks n. What was waiting for it alone is due.
func (r *run) finish(n *node, s state) {
	n.state = s
	e := Event{Cell: n.String(), Step: n.Step.Name}
	switch s {
	case cached:
		e.Kind = CellCached
		// Without it, why would compare with an older state; nothing else is lost.
		_ = r.store.Seen(r.plan.Name, e.Cell, n.key)
	case failed:
		e.Kind, e.Err = CellFailed, n.err
		r.failed = true
		r.stopped = r.stopped || r.FailFast
	case blocked:
		e.Kind, e.Reason = CellBlocked, n.err.(*blockedError).by.String()
	}
	if s != done && s != postponed { // which was told, and which isn't the run's
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
	// What was loaded of a cell is forgotten once all that read it have finished.
	for _, from := range r.edges(n) {
		if from.unread--; from.unread == 0 {
			from.forget()
		}
	}
	if n.unread == 0 {
		n.forget()
	}
}

// needs reports whether n, a member of a job that didn't execute because another failed, can't do without it:
// one that it reads has no results, and isn't dropped or to execute again.
func (r *run) needs(n *node) bool {
	by := r.blocker(n)
	return by != nil && by.state != waiting
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
		case r.ctx.Err() != nil && e != nil:
			m.state = missing // stopped in the middle, not failed
		case isBlocked && !r.needs(m.node):
			// It executes again, without what failed, when all it reads has finished.
			if m.state, m.settled = waiting, false; m.wait == 0 {
				r.due = append(r.due, m.node)
			}
		case e == nil && m.cut:
			r.finish(m.node, cached)
		case e == nil:
			r.reportForced(m.node)
			e := eventOf(CellDone, m.Cell)
			e.Total, e.Reason, e.Took = j.total, m.reason, time.Since(j.start)
			r.emit(e)
			r.finish(m.node, done)
		case isPostponed:
			m.node.err = later
			r.finish(m.node, postponed)
		case isBlocked:
			m.node.err = b
			r.finish(m.node, blocked)
		default:
			m.node.err = e
			r.finish(m.node, failed)
		}
	}
}
