package schedule

import (
	"slices"

	"github.com/runexp/runexp/pipeline/plan"
)

// Live returns the edges of a cell that pass data on, input by input: if its step drops missing cells, the
// edges from cells that aren't missing. It returns nil if all do.
func Live(c *plan.Cell, missing func(*plan.Cell) bool) (live [][]plan.Edge) {
	if !c.Step.Drop {
		return nil
	}
	dead := func(e plan.Edge) bool { return missing(e.From) }
	for p := range c.Inputs {
		edges := c.Inputs[p].Edges
		if !slices.ContainsFunc(edges, dead) {
			continue
		}
		if live == nil {
			live = make([][]plan.Edge, len(c.Inputs))
			for p := range c.Inputs {
				live[p] = c.Inputs[p].Edges
			}
		}
		live[p] = slices.DeleteFunc(slices.Clone(edges), dead)
	}
	return live
}

// Blocker returns a missing cell without which c can't be executed, or nil. A step that drops missing cells
// needs one cell an input.
func Blocker(c *plan.Cell, missing func(*plan.Cell) bool) *plan.Cell {
	for p := range c.Inputs {
		var first *plan.Cell
		lacks := 0
		for _, e := range c.Inputs[p].Edges {
			if !missing(e.From) {
				continue
			}
			if lacks++; first == nil {
				first = e.From
			}
		}
		if first != nil && (!c.Step.Drop || lacks == len(c.Inputs[p].Edges)) {
			return first
		}
	}
	return nil
}

// Live returns the edges of a cell that pass data on, once all its inputs have finished or run in the same
// job: see the function of that name.
func (s *Schedule) Live(c *plan.Cell) [][]plan.Edge {
	return Live(c, func(from *plan.Cell) bool {
		state := s.State(from)
		return !state.OK() && state != Running
	})
}

// Blocker returns a cell without which c, whose inputs have all finished, can't be executed, or nil.
func (s *Schedule) Blocker(c *plan.Cell) *plan.Cell {
	return Blocker(c, func(from *plan.Cell) bool { return !s.State(from).OK() })
}

// Needs reports whether c, which wasn't executed because another cell of its job failed, can't be executed
// without one of its inputs, which has no results and won't be executed again.
func (s *Schedule) Needs(c *plan.Cell) bool {
	by := s.Blocker(c)
	return by != nil && s.State(by) >= Ready
}
