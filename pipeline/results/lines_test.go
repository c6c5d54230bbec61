package results

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/stages"
)

// A chain is a plan of stages, each of which reads the one before. A stage is written "name[axis,axis]"; what
// the next one doesn't name is collapsed. Every axis has the ids a and b.
func chain(names ...string) *plan.Plan {
	p := &plan.Plan{}
	var before *plan.Step
	for _, text := range names {
		name, axes, _ := strings.Cut(strings.TrimSuffix(text, "]"), "[")
		s := &plan.Step{Name: name}
		if axes != "" {
			s.Axes = strings.Split(axes, ",")
		}
		for _, coord := range places(s.Axes) {
			c := &plan.Cell{Index: len(p.Cells), Step: s, Coord: coord, Stage: &stages.Stage{}}
			if before != nil {
				c.Inputs = []plan.Input{{}}
				for _, from := range before.Cells {
					if rest, ok := beyond(from.Coord, coord); ok {
						c.Inputs[0].Edges = append(c.Inputs[0].Edges, plan.Edge{From: from, Coord: rest})
					}
				}
			}
			s.Cells, p.Cells = append(s.Cells, c), append(p.Cells, c)
		}
		p.Steps, before = append(p.Steps, s), s
	}
	return p
}

func places(axes []string) [][]stages.Coord {
	if len(axes) == 0 {
		return [][]stages.Coord{nil}
	}
	var all [][]stages.Coord
	for _, place := range places(axes[:len(axes)-1]) {
		for _, id := range []string{"a", "b"} {
			at := stages.Coord{Axis: axes[len(axes)-1], ID: id}
			all = append(all, append(append([]stages.Coord{}, place...), at))
		}
	}
	return all
}

// beyond returns the coordinates of from on axes that to hasn't. ok is false if the others differ.
func beyond(from, to []stages.Coord) (rest []stages.Coord, ok bool) {
	at := map[string]string{}
	for _, c := range to {
		at[c.Axis] = c.ID
	}
	for _, c := range from {
		switch id, known := at[c.Axis]; {
		case !known:
			rest = append(rest, c)
		case id != c.ID:
			return nil, false
		}
	}
	return rest, true
}

// TestLines checks which cells have one line together: those that differ along axes which are collapsed
// before anything is published.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		name    string
		plan    []string
		publish string
		want    []string
	}{
		{"nothing is published", []string{"maps[draw]", "fold"}, "", []string{"maps ×2", "fold"}},
		{"a stage that collapses is published", []string{"maps[draw]", "fold"}, "fold",
			[]string{"maps[draw=a]", "maps[draw=b]", "fold"}},
		{"a later stage is published", []string{"maps[draw]", "fold", "total"}, "total",
			[]string{"maps ×2", "fold", "total"}},
		{"the stage itself is published", []string{"maps[draw]", "fold", "total"}, "maps",
			[]string{"maps[draw=a]", "maps[draw=b]", "fold", "total"}},
		{"an axis that a reader lists stays", []string{"maps[draw,net]", "fold[net]", "total"}, "total",
			[]string{"maps[net=a] ×2", "maps[net=b] ×2", "fold[net=a]", "fold[net=b]", "total"}},
		{"no stage reads it", []string{"maps[draw]"}, "", []string{"maps[draw=a]", "maps[draw=b]"}},
	} {
		p := chain(c.plan...)
		for _, s := range p.Steps {
			if s.Name == c.publish {
				p.Publish = append(p.Publish, s)
			}
		}
		if d := cmp.Diff(c.want, names(linesOf(p, p.Cells))); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

func linesOf(p *plan.Plan, order []*plan.Cell) []publish.Cell {
	l := newLines(p)
	for _, c := range order {
		name := c.String()
		l.add(c, publish.Cell{Name: name, Coord: c.Coord, Definition: stages.Sum([]byte(name)),
			MadeBy: "cpu", Params: []byte(`{"all":1,"name":"` + name + `"}`)})
	}
	return l.list()
}

func names(cells []publish.Cell) (names []string) {
	for _, c := range cells {
		if c.Cells > 1 {
			c.Name += " ×" + string(rune('0'+c.Cells))
		}
		names = append(names, c.Name)
	}
	return names
}

// TestLineOfSeveralCells checks what cells have in common on their line, that their order doesn't matter,
// and that a cell without results has a line of its own.
func TestLineOfSeveralCells(t *testing.T) {
	p := chain("maps[draw]", "fold", "total")
	p.Publish = p.Steps[2:]
	a, b := p.Cells[0], p.Cells[1]
	lines, other := linesOf(p, []*plan.Cell{a, b}), linesOf(p, []*plan.Cell{b, a})
	if d := cmp.Diff(lines, other); d != "" || len(lines) != 1 {
		t.Fatalf("%d lines depend on the order of the cells: %s", len(lines), d)
	}
	if got := string(lines[0].Params); got != `{"all":1}` || lines[0].MadeBy != "cpu" {
		t.Errorf("in common are the parameters %s and the maker %q", got, lines[0].MadeBy)
	}
	if lines[0].Definition == stages.Sum([]byte(a.String())) {
		t.Error("the definition is that of one cell")
	}
	l := newLines(p)
	l.add(a, publish.Cell{Name: a.String(), State: publish.Failed})
	l.add(b, publish.Cell{Name: b.String(), MadeBy: "gpu"})
	if got := names(l.list()); len(got) != 2 || got[0] != a.String() {
		t.Errorf("with a failed cell the lines are %q", got)
	}
}
