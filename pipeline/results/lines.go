package results

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/stages"
)

// lines lists the publishable results of cells. Cells that differ only along axes which are collapsed
// before anything is published have one line together: for a test on a thousand draws that publishes one
// verdict, the folder doesn't have a thousand lines.
type lines struct {
	axes   map[*plan.Step]map[string]bool // the axes that distinguish the lines of a step
	joined map[string]*line               // lines of several cells, by name
	all    []*line
}

// A line is the publishable results of one cell, or of several cells together.
type line struct {
	publish.Cell
	defs []stages.Digest // the definitions of the cells; nil for a line that has one cell by itself
}

func newLines(p *plan.Plan) *lines { return &lines{axes: listedAxes(p), joined: map[string]*line{}} }

// add lists the publishable results of c. A cell without results has a separate line.
func (l *lines) add(c *plan.Cell, cell publish.Cell) {
	coord := slices.DeleteFunc(slices.Clone(c.Coord), func(at stages.Coord) bool {
		return !l.axes[c.Step][at.Axis]
	})
	if cell.State != publish.Done || len(coord) == len(c.Coord) {
		l.all = append(l.all, &line{Cell: cell})
		return
	}
	name := (&plan.Cell{Step: c.Step, Coord: coord}).String()
	if first := l.joined[name]; first != nil {
		first.join(&cell)
		return
	}
	first := &line{Cell: cell, defs: []stages.Digest{cell.Definition}}
	first.Name, first.Coord, first.Cells, first.Scores = name, coord, 1, nil
	l.joined[name], l.all = first, append(l.all, first)
}

// join adds a cell to the line of others. Parameters that differ among them aren't listed.
func (l *line) join(c *publish.Cell) {
	l.Cells++
	l.defs = append(l.defs, c.Definition)
	if c.MadeBy != l.MadeBy {
		l.MadeBy = ""
	}
	var of, other map[string]json.RawMessage
	if json.Unmarshal(l.Params, &of) == nil && json.Unmarshal(c.Params, &other) == nil {
		maps.DeleteFunc(of, func(name string, v json.RawMessage) bool { return !bytes.Equal(v, other[name]) })
		l.Params, _ = json.Marshal(of)
	}
}

// list returns the lines in the order of their first cells. The definition of a line of several cells digests
// theirs; the order in which the experiment lists the cells doesn't matter.
func (l *lines) list() (cells []publish.Cell) {
	for _, line := range l.all {
		if line.defs != nil {
			slices.SortFunc(line.defs, func(a, b stages.Digest) int { return bytes.Compare(a[:], b[:]) })
			line.Definition = key.Of("folded", line.defs, nil)
		}
		cells = append(cells, line.Cell)
	}
	return cells
}

// listedAxes returns, by step, the axes along which its cells have lines of their own. A step that is
// published, or that no step reads, lists all of its axes. Any other step lists the axes that a step which
// reads it lists or, being published, collapses.
func listedAxes(p *plan.Plan) map[*plan.Step]map[string]bool {
	listed, read := map[*plan.Step]map[string]bool{}, map[*plan.Step]bool{}
	for _, s := range p.Steps {
		listed[s] = map[string]bool{}
	}
	for _, c := range slices.Backward(p.Cells) {
		if makesThumbnails(c.Step) {
			continue
		}
		published := slices.Contains(p.Publish, c.Step)
		for _, at := range c.Coord {
			listed[c.Step][at.Axis] = listed[c.Step][at.Axis] || published || !read[c.Step]
		}
		for _, in := range c.Inputs {
			for _, e := range in.Edges {
				read[e.From.Step] = true
				for _, at := range e.Coord {
					listed[e.From.Step][at.Axis] = listed[e.From.Step][at.Axis] || published
				}
				for axis, apart := range listed[c.Step] {
					listed[e.From.Step][axis] = listed[e.From.Step][axis] || apart
				}
			}
		}
	}
	return listed
}
