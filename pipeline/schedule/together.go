package schedule

import (
	"cmp"
	"slices"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// nextJob takes the cells of the next job from the queues. It returns nil if there is none yet.
func (s *Schedule) nextJob() *Job {
	cells := s.release(true)
	for i := 0; cells == nil && i < len(s.ready); i++ {
		cells = s.sharers(s.ready[i])
	}
	if cells == nil && s.active+len(s.begun) == 0 {
		cells = s.release(false)
	}
	if cells == nil {
		return nil
	}
	j := &Job{Cells: make([]*plan.Cell, len(cells))}
	for i, c := range cells {
		c.state = Running
		j.Cells[i] = c.plan
		j.Device = j.Device || c.plan.Stage.Device
	}
	runs := func(c *cell) bool { return c.state == Running }
	s.held = slices.DeleteFunc(s.held, runs)
	if len(cells) == 1 && len(s.ready) > 0 && runs(s.ready[0]) { // as most are, of perhaps many thousands
		s.ready = s.ready[1:]
	} else {
		s.ready = slices.DeleteFunc(s.ready, runs)
	}
	return j
}

// sharers returns a ready cell and the other ready ones that may share its work. It returns nil while
// another one waits only for its program, so that the sharing doesn't depend on when programs are compiled.
func (s *Schedule) sharers(first *cell) []*cell {
	if first.plan.Stage.Shared == nil {
		return []*cell{first}
	}
	may := func(c *cell) bool { return c.plan.MayShare(first.plan) }
	if slices.ContainsFunc(s.uncompiled, may) || slices.ContainsFunc(s.compiling, may) {
		return nil
	}
	var cells []*cell
	for _, c := range slices.Backward(s.ready) { // in the order of the plan
		if c == first || may(c) {
			cells = append(cells, c)
		}
	}
	return cells
}

// release takes the cells of a job of which one is held, once everything that they read has finished. If
// patient is false, cells that still wait for others are left out.
func (s *Schedule) release(patient bool) []*cell {
	waiting := map[*cell]bool{} // they are in a job that isn't complete
	for _, c := range s.held {
		if waiting[c] {
			continue
		}
		cells, complete := s.together(c, patient)
		if complete {
			return cells
		}
		for _, c := range cells {
			waiting[c] = true
		}
	}
	return nil
}

// A gathering is an incomplete job around a held cell.
type gathering struct {
	schedule   *Schedule
	first      *cell
	in         map[*cell]bool // the job
	after      map[*cell]bool // cells that need the job's results
	cells      []*cell        // of the job
	candidates []*cell        // those of after, in the order in which they were found
}

// together returns the cells that are to execute together with first, whose bytes aren't kept: those that
// read them, or read the bytes of a cell that does and isn't kept either, item by item; and the held cells
// that these read too, be it through others whose bytes aren't kept. complete is false while one of them
// still waits for a cell outside the job; such a cell is left out if patient is false.
func (s *Schedule) together(first *cell, patient bool) (cells []*cell, complete bool) {
	if first.plan.Stage.Relation != stages.Each {
		return []*cell{first}, true
	}
	g := &gathering{schedule: s, first: first, in: map[*cell]bool{}, after: map[*cell]bool{}}
	g.add(first)
	g.addHeld()
	byIndex := func(a, b *cell) int { return cmp.Compare(a.plan.Index, b.plan.Index) }
	slices.SortFunc(g.candidates, byIndex)
	complete = true
	for _, c := range g.candidates {
		joins, waits := g.joins(c)
		if !joins || !g.aligned(c) || waits && !patient {
			continue
		}
		complete = complete && !waits
		g.in[c] = true
		g.cells = append(g.cells, c)
	}
	slices.SortFunc(g.cells, byIndex)
	return g.depthFirst(), complete
}

// add adds a held cell, and the cells that need it to the candidates.
func (g *gathering) add(held *cell) {
	g.in[held] = true
	g.cells = append(g.cells, held)
	for queue := []*cell{held}; len(queue) > 0; queue = queue[1:] {
		for _, r := range queue[0].readers {
			if !g.after[r] && !r.state.Finished() {
				g.after[r] = true
				g.candidates = append(g.candidates, r)
				queue = append(queue, r)
			}
		}
	}
}

// addHeld adds the held cells that candidates read, themselves or through cells that aren't kept and still
// wait. The cells that need these become candidates, too.
func (g *gathering) addHeld() {
	seen := map[*cell]bool{}
	for i := 0; i < len(g.candidates); i++ {
		if !g.aligned(g.candidates[i]) {
			continue
		}
		for above := []*cell{g.candidates[i]}; len(above) > 0; above = above[1:] {
			for e := range above[0].plan.Edges() {
				from := g.from(e)
				if g.in[from] || g.after[from] || seen[from] {
					continue
				}
				seen[from] = true
				switch {
				case from.plan.Step.Keep || !g.aligned(from):
				case from.state == Held:
					g.add(from)
				case from.state < Ready:
					above = append(above, from)
				}
			}
		}
	}
}

func (g *gathering) from(e plan.Edge) *cell { return g.schedule.cells[e.From.Index] }

// aligned reports whether c takes the same items as the gathering's first cell, one by one.
func (g *gathering) aligned(c *cell) bool {
	calls := g.schedule.calls
	return c.plan.Stage.Relation == stages.Each && calls[c.plan.Index] == calls[g.first.plan.Index]
}

// joins reports whether c reads bytes that live only in the job and nothing that comes after it, and
// whether it still waits for a cell elsewhere.
func (g *gathering) joins(c *cell) (joins, waits bool) {
	if c.state >= Running {
		return false, false
	}
	for e := range c.plan.Edges() {
		from := g.from(e)
		switch {
		case g.in[from]:
			joins = joins || !from.plan.Step.Keep
		case from.state.OK():
		case from.state.Finished() || g.after[from]:
			return false, false
		default:
			waits = true
		}
	}
	return joins, waits
}

// depthFirst orders the cells of the job so that few of their bytes live at a time: each comes right after
// the cells that it needs, and a cell that is kept, or that no cell of the job reads, as early as possible.
func (g *gathering) depthFirst() []*cell {
	out := make([]*cell, 0, len(g.cells))
	lacks := map[*cell]int{} // edges from cells of the job that aren't placed
	inJob := func(c *cell) bool { return g.in[c] }
	ends := func(c *cell) bool { return c.plan.Step.Keep || !slices.ContainsFunc(c.readers, inJob) }
	for _, c := range g.cells {
		for e := range c.plan.Edges() {
			if g.in[g.from(e)] {
				lacks[c]++
			}
		}
	}
	placed := map[*cell]bool{}
	var place func(c *cell)
	place = func(c *cell) {
		if placed[c] {
			return
		}
		placed[c] = true
		for e := range c.plan.Edges() {
			if from := g.from(e); g.in[from] {
				place(from)
			}
		}
		out = append(out, c)
		for _, r := range c.readers {
			if lacks[r]--; g.in[r] && lacks[r] == 0 && ends(r) {
				place(r)
			}
		}
	}
	for _, c := range g.cells {
		if ends(c) {
			place(c)
		}
	}
	return out
}
