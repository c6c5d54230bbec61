// Package schedule decides which cells of a plan a run works on next. It is pure: it knows neither store nor
// context, and starts no goroutine. Its caller takes cells that are due, reports what the store has for them,
// takes work while slots are free, and says how the work ended.
//
// A cell goes through these states; the arrows are the methods of [Schedule]:
//
//		Waiting ── the last input Finished ─► Due
//		Due ── Missing ─► Ready or Held ── Next ─► Running ── Finished ─► Done, Failed, Blocked or Postponed
//		Due ── Missing, while another cell with the key is to be executed ─► Waiting ── that Finished ─► Due
//		Due ── Finished ─► Cached, Failed, Blocked or Postponed
//		Due ── Uncompiled ─► Uncompiled ── Next ─► Compiling ── Returned ─► Due
//		Running ── Again ─► Waiting or Due
//
//	  - state: the states.
//	  - schedule: the queues, and what is next.
//	  - together: the cells that one job executes together.
//	  - live: the inputs of a step that drops missing cells.
package schedule

import (
	"cmp"
	"slices"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// A Schedule has the state of each cell of a plan in a run. Its methods are for one goroutine.
type Schedule struct {
	cells []*cell // by index in the plan
	calls []plan.Output

	due        []*cell // the last one is next
	uncompiled []*cell // in the order in which they are compiled
	compiling  []*cell
	// the last one of the plan first, so that what is begun is finished early
	ready     []*cell
	held      []*cell                 // in the order in which they became held
	executing map[stages.Digest]*cell // by key: those that are ready or run, or have run
	begun     []*Job                  // with pieces left to start, by their first cells
	active    int                     // pieces of work that were handed out and haven't returned
}

// A cell is a schedule's data about a cell.
type cell struct {
	plan    *plan.Cell
	state   State
	waits   int // edges from cells that haven't finished
	unread  int // edges to cells that haven't finished
	readers []*cell
	twins   []*cell // cells with the same key, which wait for this one
}

// A Job is cells that are executed together, in their order.
type Job struct {
	Cells  []*plan.Cell
	Device bool // one of them computes on a device
}

// Work is one piece of work: a program to compile, a job to open, or a piece of a job that is open.
type Work struct {
	Compile *plan.Cell
	Open    *Job
	Piece   *Job
}

// New returns the schedule of a plan's cells, those without inputs due. calls is the result of
// [plan.Plan.Calls].
func New(cells []*plan.Cell, calls []plan.Output) *Schedule {
	s := &Schedule{calls: calls, cells: make([]*cell, len(cells)), executing: map[stages.Digest]*cell{}}
	all := make([]cell, len(cells))
	for i, c := range cells {
		s.cells[i] = &all[i]
		all[i].plan = c
		for e := range c.Edges() {
			from := s.cells[e.From.Index]
			from.unread++
			from.readers = append(from.readers, &all[i])
			all[i].waits++
		}
		if all[i].waits == 0 {
			s.makeDue(&all[i])
		}
	}
	return s
}

// State returns the state of a cell.
func (s *Schedule) State(c *plan.Cell) State { return s.cells[c.Index].state }

// Count returns how many cells are in a state.
func (s *Schedule) Count(in State) (count int) {
	for _, c := range s.cells {
		if c.state == in {
			count++
		}
	}
	return count
}

// Idle reports whether no work is handed out.
func (s *Schedule) Idle() bool { return s.active == 0 }

func (s *Schedule) makeDue(c *cell) {
	c.state = Due
	s.due = append(s.due, c)
}

// Due takes a cell whose inputs have all finished, or returns nil if there is none. The caller looks it up,
// and calls Uncompiled, Missing or Finished.
func (s *Schedule) Due() *plan.Cell {
	if len(s.due) == 0 {
		return nil
	}
	c := s.due[len(s.due)-1]
	s.due = s.due[:len(s.due)-1]
	return c.plan
}

// Uncompiled makes c wait until its program is compiled, without which it has no key.
func (s *Schedule) Uncompiled(c *plan.Cell) {
	s.cells[c.Index].state = Uncompiled
	s.uncompiled = append(s.uncompiled, s.cells[c.Index])
}

// Missing makes c wait for execution, since the store has nothing under its key. If another cell with the
// key is to be executed, c waits for that one and is due again.
func (s *Schedule) Missing(c *plan.Cell, key stages.Digest) {
	at := s.cells[c.Index]
	if !c.Kept() {
		at.state = Held
		s.held = append(s.held, at)
		return
	}
	if other := s.executing[key]; other != nil && !other.state.Finished() {
		at.state = Waiting
		other.twins = append(other.twins, at)
		return
	}
	at.state = Ready
	s.executing[key] = at
	s.ready = insert(s.ready, at, func(c *cell) int { return -c.plan.Index })
}

// Finished sets the final state of c. Cells that waited only for it are due. It returns the cells that no
// cell will read any more, whose results the caller need not have in memory.
func (s *Schedule) Finished(c *plan.Cell, as State) (unread []*plan.Cell) {
	at := s.cells[c.Index]
	at.state = as
	for _, r := range at.readers {
		if r.waits--; r.waits == 0 && r.state == Waiting {
			s.makeDue(r)
		}
	}
	for _, twin := range at.twins {
		s.makeDue(twin)
	}
	at.twins = nil
	for e := range c.Edges() {
		from := s.cells[e.From.Index]
		if from.unread--; from.unread == 0 {
			unread = append(unread, from.plan)
		}
	}
	if at.unread == 0 {
		unread = append(unread, c)
	}
	return unread
}

// Again cancels the execution of c, of a job: c is due when all its inputs have finished.
func (s *Schedule) Again(c *plan.Cell) {
	at := s.cells[c.Index]
	if at.state = Waiting; at.waits == 0 {
		s.makeDue(at)
	}
}

// WantsDevice reports whether there is work for a slot of a device.
func (s *Schedule) WantsDevice() bool {
	return slices.ContainsFunc(s.begun, func(j *Job) bool { return j.Device })
}

// Next hands out the next piece of work for which a slot is free, on the host or on a device; ok is false
// if there is none. Compiling comes first, then jobs that are begun, then new ones.
func (s *Schedule) Next(host, device bool) (w Work, ok bool) {
	w, ok = s.next(host, device)
	if ok {
		s.active++
	}
	return w, ok
}

func (s *Schedule) next(host, device bool) (w Work, ok bool) {
	if host && len(s.uncompiled) > 0 {
		c := s.uncompiled[0]
		c.state = Compiling
		s.uncompiled, s.compiling = s.uncompiled[1:], append(s.compiling, c)
		return Work{Compile: c.plan}, true
	}
	for _, j := range s.begun {
		if j.Device && device || !j.Device && host {
			return Work{Piece: j}, true
		}
	}
	if !host {
		return w, false
	}
	if w.Open = s.nextJob(); w.Open == nil {
		return w, false
	}
	return w, true
}

// Returned records that the piece of work w is done. A cell whose program is compiled is due again.
func (s *Schedule) Returned(w Work) {
	s.active--
	if c := w.Compile; c != nil {
		at := s.cells[c.Index]
		s.compiling = slices.DeleteFunc(s.compiling, func(other *cell) bool { return other == at })
		s.makeDue(at)
	}
}

// Begin makes Next hand out chunks of j, which is open.
func (s *Schedule) Begin(j *Job) {
	s.begun = insert(s.begun, j, func(j *Job) int { return j.Cells[0].Index })
}

// AllStarted makes Next hand out no more pieces of j.
func (s *Schedule) AllStarted(j *Job) {
	s.begun = slices.DeleteFunc(s.begun, func(other *Job) bool { return other == j })
}

// insert puts x into a list that is sorted by index.
func insert[T any](list []T, x T, index func(T) int) []T {
	i, _ := slices.BinarySearchFunc(list, x, func(a, b T) int { return cmp.Compare(index(a), index(b)) })
	return slices.Insert(list, i, x)
}
