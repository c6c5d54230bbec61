package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// parseCell splits a cell's name, maps[method=ig,model=vgg], into the stage and
// the coordinates, sorted by axis.
func parseCell(name string) (step string, coord []stages.Coord, err error) {
	step, rest, bracket := strings.Cut(name, "[")
	if !bracket {
		return step, nil, nil
	}
	rest, ok := strings.CutSuffix(rest, "]")
	if !ok || step == "" {
		return "", nil, fmt.Errorf("%q isn't the name of a cell, such as maps[method=ig,model=vgg]", name)
	}
	for _, part := range strings.Split(rest, ",") {
		axis, id, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || axis == "" || id == "" {
			return "", nil, fmt.Errorf("%q isn't the name of a cell: %q should be axis=id", name, part)
		}
		coord = append(coord, stages.Coord{Axis: axis, ID: id})
	}
	slices.SortFunc(coord, func(a, b stages.Coord) int { return strings.Compare(a.Axis, b.Axis) })
	return step, coord, nil
}

// Selector returns a function that says whether a cell is one of those named:
// by its stage alone, or by some of its coordinates too, maps[method=ig]. It is
// an error if a name fits no cell of p.
func (p *Plan) Selector(names []string) (func(*Cell) bool, error) {
	chosen := map[*Cell]bool{}
	for _, name := range names {
		step, coord, err := parseCell(name)
		if err != nil {
			return nil, err
		}
		before := len(chosen)
		found := false
		for _, c := range p.Cells {
			if c.Step.Name == step && covers(c.Coord, coord) {
				chosen[c] = true
				found = true
			}
		}
		if !found && len(chosen) == before {
			return nil, fmt.Errorf("%q fits no cell of %s", name, p.Name)
		}
	}
	return func(c *Cell) bool { return chosen[c] }, nil
}

func covers(have, want []stages.Coord) bool {
	for _, w := range want {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return true
}

// Find returns the one cell that name fits; see [Plan.Fitting].
func (p *Plan) Find(name string) (*Cell, error) {
	cells, err := p.Fitting(name)
	if err == nil && len(cells) > 1 {
		return nil, fmt.Errorf("%q fits %d cells, of which %q is the first", name, len(cells), cells[0])
	}
	if err != nil {
		return nil, err
	}
	return cells[0], nil
}

// Fitting returns the cells that name fits, at least one: it is written as Cell.String
// writes it, with the axes in any order, and without those that don't matter.
func (p *Plan) Fitting(name string) ([]*Cell, error) {
	step, coord, err := parseCell(name)
	if err != nil {
		return nil, err
	}
	var fit []*Cell
	var names []string
	for _, s := range p.Steps {
		names = append(names, s.Name)
		if s.Name != step {
			continue
		}
		for _, c := range s.Cells {
			if covers(c.Coord, coord) {
				fit = append(fit, c)
			}
		}
		switch {
		case len(s.Cells) == 0:
			return nil, fmt.Errorf("stage %q has no cells", step)
		case len(fit) == 0:
			return nil, fmt.Errorf("no cell is called %q; the first of %q is %q", name, step, s.Cells[0])
		}
		return fit, nil
	}
	text := fmt.Sprintf("no stage is called %q", step)
	if near := Nearest(step, names); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return nil, errors.New(text)
}
