package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// Fitting returns the cells that name fits, at least one. The name is written as Cell.String writes it,
// with the axes in any order; axes that don't matter may be left out.
func (p *Plan) Fitting(name string) ([]*Cell, error) {
	step, coord, err := parseCell(name)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range p.Steps {
		if names = append(names, s.Name); s.Name != step {
			continue
		}
		fitting := slices.Clone(s.Cells)
		for _, at := range coord {
			fitting = slices.DeleteFunc(fitting, func(c *Cell) bool { return !slices.Contains(c.Coord, at) })
		}
		switch {
		case len(s.Cells) == 0:
			return nil, fmt.Errorf("stage %q has no cells", step)
		case len(fitting) == 0:
			return nil, fmt.Errorf("no cell is called %q; the first of %q is %q", name, step, s.Cells[0])
		}
		return fitting, nil
	}
	text := fmt.Sprintf("no stage is called %q", step)
	if hint := Guess(step, names); hint != "" {
		text += "; " + hint
	}
	return nil, errors.New(text)
}

// Selector returns a function that reports whether one of the names fits a cell; see [Plan.Fitting].
func (p *Plan) Selector(names []string) (func(*Cell) bool, error) {
	chosen := map[*Cell]bool{}
	for _, name := range names {
		cells, err := p.Fitting(name)
		if err != nil {
			return nil, err
		}
		for _, c := range cells {
			chosen[c] = true
		}
	}
	return func(c *Cell) bool { return chosen[c] }, nil
}

// parseCell splits a cell's name, maps[method=ig,model=vgg], into the stage and the coordinates.
func parseCell(name string) (step string, coord []stages.Coord, err error) {
	step, rest, bracket := strings.Cut(name, "[")
	if !bracket {
		return step, nil, nil
	}
	rest, ok := strings.CutSuffix(rest, "]")
	if !ok || step == "" {
		return "", nil, fmt.Errorf("%q isn't the name of a cell, such as maps[method=ig,model=vgg]", name)
	}
	for part := range strings.SplitSeq(rest, ",") {
		axis, id, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || axis == "" || id == "" {
			return "", nil, fmt.Errorf("%q isn't the name of a cell: %q should be axis=id", name, part)
		}
		coord = append(coord, stages.Coord{Axis: axis, ID: id})
	}
	return step, coord, nil
}

// Taken returns which cells of a declared stage the edges to another one take, as the experiment writes them,
// such as "epoch=e1": "" for all, and nothing if there is no such edge.
func (p *Plan) Taken(from, to *Step) (at []string) {
	decl := p.decl.stage(to.Name)
	if decl == nil {
		return nil
	}
	for _, in := range decl.inputs {
		for _, w := range in.wires {
			if w.from != nil && w.from.name == from.Name && !slices.Contains(at, w.at) {
				at = append(at, w.at)
			}
		}
	}
	return at
}

// UpTo returns the part of p that the given cells need, these included. Keys and names stay as in p;
// nothing is published.
func (p *Plan) UpTo(cells ...*Cell) *Plan {
	needed := map[*Cell]bool{}
	for _, c := range cells {
		needed[c] = true
	}
	for i := len(p.Cells) - 1; i >= 0; i-- { // consumers come after the cells that they read
		if needed[p.Cells[i]] {
			for _, in := range p.Cells[i].Inputs {
				for _, e := range in.Edges {
					needed[e.From] = true
				}
			}
		}
	}
	part := *p
	part.Steps, part.Cells, part.Publish = nil, nil, nil
	copies := map[*Cell]*Cell{}
	for _, s := range p.Steps {
		step := *s
		step.Cells = nil
		for _, c := range s.Cells {
			if !needed[c] {
				continue
			}
			n := *c
			n.Index, n.Step, n.Inputs = len(part.Cells), &step, make([]Input, len(c.Inputs))
			for i, in := range c.Inputs {
				for _, e := range in.Edges {
					e.From = copies[e.From]
					n.Inputs[i].Edges = append(n.Inputs[i].Edges, e)
				}
			}
			step.Cells, part.Cells = append(step.Cells, &n), append(part.Cells, &n)
			copies[c] = &n
		}
		if len(step.Cells) > 0 {
			part.Steps = append(part.Steps, &step)
		}
	}
	return &part
}
