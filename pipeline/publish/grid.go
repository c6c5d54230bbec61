package publish

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A grid is a table as people read it, in the order in which they do. Markdown and LaTeX are written of it.
type grid struct {
	columns []gridColumn
	rows    [][]string // as published, a text for every column
	marked  [][]bool   // where the number gets an asterisk
	legend  string     // what an asterisk means, "" without any
}

type gridColumn struct {
	name   string         // as published
	label  string         // as people read it
	number *stages.Column // nil for texts
	ends   []int          // the columns of its interval's ends, lower and upper; nil for none
	end    bool           // of another column's interval
}

// newGrid arranges rows of published texts. Columns of marks become asterisks.
func newGrid(columns []string, numbers []stages.Column, rows [][]string) *grid {
	g := &grid{}
	var from []int // the column that a grid's column shows
	marks := map[string]int{}
	for i, name := range columns {
		k := slices.IndexFunc(numbers, func(n stages.Column) bool { return n.Name == name })
		c := gridColumn{name: name, label: name}
		if k >= 0 {
			if n := &numbers[k]; n.Marks != "" {
				marks[n.Marks], g.legend = i, n.Unit
				continue
			}
			c.number, c.label = &numbers[k], cmp.Or(numbers[k].Label, name)
		}
		g.columns, from = append(g.columns, c), append(from, i)
	}
	for of, ends := range intervals(numbers) {
		at := func(name string) int {
			return slices.IndexFunc(g.columns, func(c gridColumn) bool {
				return c.name == name && c.number != nil
			})
		}
		if k, low, high := at(of), at(ends[0]), at(ends[1]); k >= 0 && low >= 0 && high >= 0 {
			g.columns[k].ends = []int{low, high}
			g.columns[low].end, g.columns[high].end = true, true
		}
	}
	for _, row := range rows {
		texts, marked := make([]string, len(from)), make([]bool, len(from))
		for i, k := range from {
			texts[i] = row[k]
			if m, ok := marks[g.columns[i].name]; ok {
				x, isNumber := parse(row[m])
				marked[i] = isNumber && x == 1
			}
		}
		g.rows, g.marked = append(g.rows, texts), append(g.marked, marked)
	}
	return g
}

// gridOf arranges a table of a review folder, or the first rows of one, as its experiment orders them.
func (f *Folder) gridOf(s *Sheet, limit int) *grid {
	columns := s.Columns()
	var rows [][]string
	for _, r := range f.Shown(s)[:min(limit, len(s.Rows))] {
		texts := make([]string, len(columns))
		for i, c := range columns {
			texts[i] = f.label(s, i, r.get(c))
		}
		rows = append(rows, texts)
	}
	return newGrid(columns, s.Numbers, rows)
}

// label returns what people read in the place of a text in a column of a table: of an id on the column's axis
// its label, and of another text that of an id on an axis of another column, as that of a reference.
func (f *Folder) label(s *Sheet, column int, text string) string {
	axes := slices.Concat(s.axes, s.Keys)
	if f.Labels == nil || column >= len(axes) {
		return text
	}
	if f.Order[axes[column]] != nil {
		return cmp.Or(f.Labels[axes[column]][text], text)
	}
	for _, axis := range axes {
		if label, ok := f.Labels[axis][text]; ok {
			return label
		}
	}
	return text
}

// tableGrid arranges a table of one cell.
func tableGrid(t stages.Table) *grid {
	columns := slices.Clone(t.Keys)
	for _, n := range t.Numbers {
		columns = append(columns, n.Name)
	}
	var rows [][]string
	for _, r := range t.Rows {
		texts := slices.Clone(r.Keys)
		for _, x := range r.Numbers {
			texts = append(texts, format(float64(x), digits))
		}
		rows = append(rows, texts)
	}
	return newGrid(columns, t.Numbers, rows)
}

// at returns the number at a place: NaN where it's undefined or a text.
func (g *grid) at(row, column int) float64 {
	if g.columns[column].number == nil {
		return math.NaN()
	}
	x, ok := parse(g.rows[row][column])
	if !ok {
		return math.NaN()
	}
	return x
}

// intervals returns the ends of the intervals in a table's numbers, lower and upper, by the number that they
// belong to: "x low" and "x high" to "x", and "low" and "high" to the number before them.
func intervals(numbers []stages.Column) map[string][2]string {
	out := map[string][2]string{}
	names, before := map[string]bool{}, ""
	for _, n := range numbers {
		if n.Marks != "" {
			continue
		}
		names[n.Name] = true
		if n.Name == "high" && names["low"] && before != "" {
			out[before] = [2]string{"low", "high"}
		}
		if of, ok := strings.CutSuffix(n.Name, " high"); ok && names[of] && names[of+" low"] {
			out[of] = [2]string{of + " low", n.Name}
		}
		if n.Name != "low" && n.Name != "high" {
			before = n.Name
		}
	}
	return out
}
