package plan

import (
	"github.com/runexp/runexp/stages"
)

// TooFew returns a warning for every step whose cells get too few items for their stage, if the numbers of
// items are known before the plan is run. It lists the sources of data sets.
func (p *Plan) TooFew() Diags {
	var ds diagnostics
	most := make([]int, len(p.Cells)) // by cell: items on its first port, −1 if unknown
	warned := map[*Step]bool{}
	for i, c := range p.Cells {
		in, known := c.amounts(most)
		most[i] = p.most(c, in, known)
		few := c.Stage.HooksOf(c.Params).Few
		if few == nil || !known || warned[c.Step] {
			continue
		}
		decl := p.decl.stage(c.Step.Name)
		if err := few(in); err != nil && decl != nil {
			warned[c.Step] = true
			ds.report(decl.key, "", "%s: %v", c, err)
		}
	}
	return ds.sorted()
}

// stage returns the declaration of a stage, nil for an implied one.
func (e *experimentDecl) stage(name string) *stageDecl {
	for _, s := range e.stages {
		if s.name == name {
			return s
		}
	}
	return nil
}

// amounts returns the known amounts of a cell's ports of items. known is false if nothing is known of some
// port.
func (c *Cell) amounts(most []int) (in map[string]stages.Amount, known bool) {
	in, known = map[string]stages.Amount{}, true
	for k, input := range c.Inputs {
		if !c.Stage.Inputs[k].Type.Items || len(input.Edges) == 0 {
			continue
		}
		a := stages.Amount{Items: -1, IDs: map[string]int{}}
		seen := map[stages.Coord]bool{}
		for _, e := range input.Edges {
			if n := most[e.From.Index]; a.Items < 0 || n < a.Items {
				a.Items = n
			}
			for _, at := range e.Coord {
				if !seen[at] {
					seen[at] = true
					a.IDs[at.Axis]++
				}
			}
			if a.Items < 0 {
				break
			}
		}
		known = known && a.Items >= 0
		in[c.Stage.Inputs[k].Name] = a
	}
	return in, known
}

// most returns the largest number of items that a cell can have on its first port, −1 if unknown.
func (p *Plan) most(c *Cell, in map[string]stages.Amount, known bool) int {
	s := c.Stage
	switch {
	case s.Relation == stages.Whole || s.Relation == stages.Expand && s.Primary() >= 0:
		if most := s.HooksOf(c.Params).Most; most != nil && known {
			return most(in)
		}
		return -1
	case s.Primary() >= 0:
		n := -1
		for _, a := range in {
			if n < 0 || a.Items < n {
				n = a.Items
			}
			if n < 0 {
				break
			}
		}
		return n
	case s.Sources == nil || s.Relation == stages.Expand:
		return -1
	}
	list, err := c.Sources(nil)
	switch {
	case err != nil:
		return -1
	case p.Limit > 0:
		return min(len(list), p.Limit)
	}
	return len(list)
}
