package plan

import (
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
)

func TestUpTo(t *testing.T) {
	steps := map[string]*Step{}
	p := &Plan{Name: "p"}
	cell := func(step, id string, from ...*Cell) *Cell {
		s := steps[step]
		if s == nil {
			s = &Step{Name: step}
			steps[step] = s
			p.Steps = append(p.Steps, s)
		}
		c := &Cell{Index: len(p.Cells), Step: s, Coord: []stages.Coord{{Axis: "m", ID: id}}}
		for _, f := range from {
			c.Inputs = append(c.Inputs, Input{Edges: []Edge{{From: f}}})
		}
		p.Cells = append(p.Cells, c)
		s.Cells = append(s.Cells, c)
		return c
	}
	x, y := cell("images", "x"), cell("images", "y")
	mx := cell("maps", "x", x)
	cell("maps", "y", y)
	sx := cell("score", "x", mx, x)

	part := p.UpTo(sx)
	var names []string
	for i, c := range part.Cells {
		names = append(names, c.String())
		if c.Index != i || p.Cells[i] == c {
			t.Errorf("%s: index %d at %d, or shared with the whole plan", c, c.Index, i)
		}
		for _, in := range c.Inputs {
			for _, e := range in.Edges {
				if part.Cells[e.From.Index] != e.From {
					t.Errorf("%s reads a cell outside the part", c)
				}
			}
		}
	}
	if want := []string{"images[m=x]", "maps[m=x]", "score[m=x]"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if len(p.Cells) != 5 || sx.Index != 4 || sx.Inputs[0].Edges[0].From != mx {
		t.Error("the whole plan was changed")
	}
}
