package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/runexp/runexp/stages"
)

// The columns of stats/wilcoxon from which marks are made.
const (
	unconfirmed = "not confirmed"
	reference   = "reference"
)

// A mark says whether the difference between a competitor and the reference is confirmed. Its place is the
// competitor's, by axis.
type mark struct {
	place     map[string]string
	among     string // the axis of competitors
	reference string // the id with which the competitor is compared
	not       bool   // not confirmed
}

type marks []mark

// readMarks reads tables of stats/wilcoxon: a row for every competitor except the reference, with the axes
// among the key columns. axes are the axes of the marked table.
func readMarks(data []stages.Data, axes []string) (marks, error) {
	var out marks
	for _, d := range data {
		b, err := d.Load(0)
		if err != nil {
			return nil, err
		}
		t, err := stages.DecodeTable(b)
		if err != nil {
			return nil, fmt.Errorf("marks: %w", err)
		}
		number := slices.IndexFunc(t.Numbers, func(c stages.Column) bool { return c.Name == unconfirmed })
		best := slices.Index(t.Keys, reference)
		if number < 0 || best < 1 {
			return nil, fmt.Errorf("marks: the table %q isn't one of stats/wilcoxon: it lacks column %q or "+
				"%q", t.Title, unconfirmed, reference)
		}
		for _, r := range t.Rows {
			m := mark{map[string]string{}, t.Keys[0], r.Keys[best], r.Numbers[number] == 1}
			for _, c := range d.Coord {
				m.place[c.Axis] = c.ID
			}
			for i, axis := range t.Keys {
				if i != best {
					m.place[axis] = r.Keys[i]
				}
			}
			for axis := range m.place {
				if !slices.Contains(axes, axis) {
					return nil, fmt.Errorf("marks: the table %q is for each %s, no axis of this table",
						t.Title, axis)
				}
			}
			out = append(out, m)
		}
	}
	return out, nil
}

// marked lists the columns that have marks: those whose name or one of whose ids is p.Mark; all if it is
// empty.
func (p *TableParams) marked(m marks, across [][]string, columns []stages.Column) ([]int, error) {
	if m == nil {
		return nil, nil
	}
	var out []int
	for k, ids := range across {
		if p.Mark == "" || columns[k].Name == p.Mark || slices.Contains(ids, p.Mark) {
			out = append(out, k)
		}
	}
	if out == nil {
		return nil, stages.BadField("mark", "no column is called %q", p.Mark)
	}
	return out, nil
}

// markColumn describes the marks of a column.
func markColumn(of string) stages.Column {
	return stages.Column{Name: of + " " + unconfirmed, Marks: of,
		Unit: "the best, and those whose difference from it isn't confirmed"}
}

// placeOf pairs axes with ids.
func placeOf(axes, ids []string) map[string]string {
	place := map[string]string{}
	for i, axis := range axes {
		place[axis] = ids[i]
	}
	return place
}

// at returns 1 for a marked cell and 0 for another. A mark whose table lacks an axis holds for all ids of
// that axis.
func (m marks) at(row, column map[string]string) stages.Number {
	place := maps.Clone(row)
	maps.Copy(place, column)
	for _, k := range m {
		holds := k.not
		for axis, id := range k.place {
			holds = holds && (place[axis] == id || axis == k.among && place[axis] == k.reference)
		}
		if holds {
			return 1
		}
	}
	return 0
}
