package plan

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/runexp/runexp/stages"
)

// A StepPower is what the tests of a step can confirm.
type StepPower struct {
	Step *Step
	stages.Power
}

func (s StepPower) String() string { return s.Step.Name + ": " + s.Text }

// TooFew returns a warning for every step whose cells get too few items for their stage or its tests, if the
// numbers of items are known before the plan is run. It lists the sources of data sets.
func (p *Plan) TooFew() Diags {
	var ds diagnostics
	warned := map[*Step]bool{}
	p.eachKnown(func(c *Cell, in map[string]stages.Amount) {
		hooks, decl := c.Stage.HooksOf(c.Params), p.decl.stage(c.Step.Name)
		if decl == nil || warned[c.Step] {
			return
		}
		text := ""
		if hooks.Few != nil {
			if err := hooks.Few(in); err != nil {
				text = err.Error()
			}
		}
		if hooks.Power != nil {
			if power := hooks.Power(in); power.Nothing {
				text = power.Text
			}
		}
		if text != "" {
			warned[c.Step] = true
			ds.report(decl.key, "", "%s: %s", c, text)
		}
	})
	return ds.sorted()
}

// Powers says for every step with tests what they can confirm, if the numbers of items are known before the
// plan is run: of the cell with the fewest items. It lists the sources of data sets.
func (p *Plan) Powers() (list []StepPower) {
	tests := func(c *Cell) bool { return c.Stage.HooksOf(c.Params).Power != nil }
	if !slices.ContainsFunc(p.Cells, tests) { // the amounts of a large plan take memory
		return nil
	}
	least := map[*Step]int{}
	p.eachKnown(func(c *Cell, in map[string]stages.Amount) {
		power := c.Stage.HooksOf(c.Params).Power
		if power == nil {
			return
		}
		of := power(in)
		if of.Text == "" {
			return
		}
		items := math.MaxInt
		for _, a := range in {
			items = min(items, a.Items)
		}
		at := slices.IndexFunc(list, func(s StepPower) bool { return s.Step == c.Step })
		switch {
		case at < 0:
			list = append(list, StepPower{c.Step, of})
		case items < least[c.Step]:
			list[at].Power = of
		default:
			return
		}
		least[c.Step] = items
	})
	return list
}

// eachKnown calls f for every cell whose amounts are known.
func (p *Plan) eachKnown(f func(c *Cell, in map[string]stages.Amount)) {
	all := make([]stages.Amount, len(p.Cells)) // by cell: items on its first port, −1 if unknown
	for i, c := range p.Cells {
		in, known := c.amounts(all)
		all[i].Items, all[i].AtMost = p.most(c, in, known)
		for k := range c.Stage.Inputs {
			all[i].Noun = cmp.Or(all[i].Noun, in[c.Stage.Inputs[k].Name].Noun)
		}
		if len(c.Stage.Outputs) > 0 && c.Stage.Outputs[0].Type == stages.Tokens {
			all[i].Noun = stages.TextItems
		}
		if known {
			f(c, in)
		}
	}
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
func (c *Cell) amounts(all []stages.Amount) (in map[string]stages.Amount, known bool) {
	in, known = map[string]stages.Amount{}, true
	for k, input := range c.Inputs {
		if !c.Stage.Inputs[k].Type.Items || len(input.Edges) == 0 {
			continue
		}
		a := stages.Amount{Items: -1, IDs: map[string]int{}}
		seen := map[stages.Coord]bool{}
		for _, e := range input.Edges {
			from := all[e.From.Index]
			if a.Items < 0 || from.Items < a.Items {
				a.Items = from.Items
			}
			a.Noun, a.AtMost = from.Noun, a.AtMost || from.AtMost
			for _, at := range e.Coord {
				if !seen[at] && !slices.Contains(c.Replicates, at.Axis) {
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

// most returns the largest number of items that a cell can have on its first port, −1 if unknown, and whether
// it may have fewer.
func (p *Plan) most(c *Cell, in map[string]stages.Amount, known bool) (n int, atMost bool) {
	s := c.Stage
	switch {
	case s.Relation == stages.Whole || s.Relation == stages.Expand && s.Primary() >= 0:
		if most := s.HooksOf(c.Params).Most; most != nil && known {
			return most(in), true
		}
		return -1, false
	case s.Primary() >= 0:
		n = -1
		for _, a := range in {
			if atMost = atMost || a.AtMost; n < 0 || a.Items < n {
				n = a.Items
			}
			if n < 0 {
				break
			}
		}
		return n, atMost
	case s.Sources == nil:
		return -1, false
	}
	if n = p.counts.of(c); n < 0 {
		return -1, false
	}
	if p.Limit > 0 {
		n = min(n, p.Limit)
	}
	if s.Relation != stages.Expand {
		return n, false
	}
	if most := s.HooksOf(c.Params).Most; most != nil {
		return most(map[string]stages.Amount{stages.SourcesAmount: {Items: n}}), false
	}
	return -1, false
}

// counts are the numbers of sources by cell, counted once: a listing may read many files.
type counts struct {
	sync.Mutex
	known map[*Cell]int
}

// of returns the number of a cell's sources, −1 if they can't be listed.
func (k *counts) of(c *Cell) int {
	k.Lock()
	defer k.Unlock()
	n, ok := k.known[c]
	if !ok {
		list, err := c.Sources(nil)
		if n = len(list); err != nil {
			n = -1
		}
		k.known[c] = n
	}
	return n
}
