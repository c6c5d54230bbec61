package typeset

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A Grid is a table for people, from which Markdown and LaTeX are written. Its rows and columns are in the
// order in which they are shown.
type Grid struct {
	columns []gridColumn
	rows    [][]string // the published texts, one for every column
	marked  [][]bool   // whether a number gets an asterisk
	Legend  string     // what an asterisk means, "" if no number has one
	Bare    string     // a sentence on the columns whose marks aren't drawn, "" for none
}

type gridColumn struct {
	name   string         // in the published table
	label  string         // for people
	number *stages.Column // nil for a column of texts
	ends   []int          // the columns with the lower and upper ends of its interval; nil for none
	sd     []int          // the column with its standard deviation over seeds; nil for none
	end    bool           // it is shown with another column's number
}

// NewGrid makes a grid of rows of published texts. Columns of marks become asterisks.
func NewGrid(columns []string, numbers []stages.Column, rows [][]string) *Grid {
	g := &Grid{}
	var from []int // the published column of each column of the grid
	marks := MarksOf(columns, numbers, rows)
	g.Legend, g.Bare = marks.Legend, marks.Bare
	for i, name := range columns {
		k := slices.IndexFunc(numbers, func(n stages.Column) bool { return n.Name == name })
		c := gridColumn{name: name, label: name}
		if k >= 0 {
			if numbers[k].Marks != "" {
				continue
			}
			c.number, c.label = &numbers[k], cmp.Or(numbers[k].Label, name)
		}
		g.columns, from = append(g.columns, c), append(from, i)
	}
	at := func(name string) int {
		return slices.IndexFunc(g.columns, func(c gridColumn) bool {
			return c.name == name && c.number != nil
		})
	}
	for of, name := range deviations(numbers) {
		if k, sd := at(of), at(name); k >= 0 && sd >= 0 {
			g.columns[k].sd, g.columns[sd].end = []int{sd}, true
		}
	}
	for of, ends := range intervals(numbers) {
		if k, low, high := at(of), at(ends[0]), at(ends[1]); k >= 0 && low >= 0 && high >= 0 {
			g.columns[k].ends = []int{low, high}
			g.columns[low].end, g.columns[high].end = true, true
		}
	}
	for _, row := range rows {
		texts, marked := make([]string, len(from)), make([]bool, len(from))
		for i, k := range from {
			texts[i] = row[k]
			if m, ok := marks.Drawn[g.columns[i].name]; ok {
				x, isNumber := Parse(row[m])
				marked[i] = isNumber && x == 1
			}
		}
		g.rows, g.marked = append(g.rows, texts), append(g.marked, marked)
	}
	return g
}

// First returns the grid with its first rows, at most limit. Which marks are drawn depends on all rows.
func (g *Grid) First(limit int) *Grid {
	short := *g
	n := min(limit, len(g.rows))
	short.rows, short.marked = g.rows[:n], g.marked[:n]
	return &short
}

// tableGrid makes a grid of a table that one cell has.
func tableGrid(t stages.Table) *Grid {
	columns := slices.Clone(t.Keys)
	for _, n := range t.Numbers {
		columns = append(columns, n.Name)
	}
	var rows [][]string
	for _, r := range t.Rows {
		texts := slices.Clone(r.Keys)
		for _, x := range r.Numbers {
			texts = append(texts, Format(float64(x), Digits))
		}
		rows = append(rows, texts)
	}
	return NewGrid(columns, t.Numbers, rows)
}

// at returns the number in a row and column, NaN if it's undefined or a text.
func (g *Grid) at(row, column int) float64 {
	if g.columns[column].number == nil {
		return math.NaN()
	}
	x, ok := Parse(g.rows[row][column])
	if !ok {
		return math.NaN()
	}
	return x
}

// intervals returns the columns of the lower and upper ends of intervals, by the column of the number that
// they enclose: "x low" and "x high" enclose "x", and "low" and "high" the number right before them. The
// whiskers of a box plot are called so, too, and have the quartiles between them.
func intervals(numbers []stages.Column) map[string][2]string {
	out := map[string][2]string{}
	names, before := map[string]bool{}, []string{"", ""} // the two numbers before
	for _, n := range numbers {
		if n.Marks != "" {
			continue
		}
		names[n.Name] = true
		if n.Name == "high" && before[1] == "low" && before[0] != "" {
			out[before[0]] = [2]string{"low", "high"}
		}
		if of, ok := strings.CutSuffix(n.Name, " high"); ok && names[of] && names[of+" low"] {
			out[of] = [2]string{of + " low", n.Name}
		}
		before = []string{before[1], n.Name}
	}
	return out
}

// deviations returns the columns of standard deviations over seeds, by the column of the number to which they
// belong: "x sd" is that of "x", and "sd" of the number before it and its interval.
func deviations(numbers []stages.Column) map[string]string {
	out := map[string]string{}
	names, before := map[string]bool{}, ""
	for _, n := range numbers {
		of, named := strings.CutSuffix(n.Name, " sd")
		switch {
		case n.Marks != "":
			continue
		case named && names[of]:
			out[of] = n.Name
		case n.Name == "sd" && before != "":
			out[before] = n.Name
		}
		names[n.Name] = true
		if n.Name != "low" && n.Name != "high" {
			before = n.Name
		}
	}
	return out
}
