package typeset

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// Pivot spreads a table over columns. Rows with the same texts in the columns that rows names become one row.
// It has the numbers that values names, with their intervals and marks, once for each combination of texts in
// the columns that columns names. Columns of texts in neither list follow those of rows. Without values, the
// first number is spread, or every number if columns is empty. A place that no row falls on is undefined; a
// place that two rows fall on is an error, and so is a name that no column has.
func Pivot(t stages.Table, rows, columns, values []string) (stages.Table, error) {
	if len(rows)+len(columns)+len(values) == 0 {
		return t, nil
	}
	var names []string
	for _, n := range t.Numbers {
		names = append(names, n.Name)
	}
	if err := namesOf("text", t.Keys, slices.Concat(rows, columns)); err != nil {
		return t, err
	}
	if err := namesOf("number", names, values); err != nil {
		return t, err
	}
	if len(values) == 0 {
		if values = names; len(columns) > 0 {
			values = names[:min(1, len(names))]
		}
	}
	for _, key := range t.Keys {
		if !slices.Contains(rows, key) && !slices.Contains(columns, key) {
			rows = append(slices.Clip(rows), key)
		}
	}
	p := pivot{Table: t, columns: columns, spread: pivotColumns(t.Numbers, values), several: len(values) > 1}
	return p.over(rows)
}

// A pivot is a table that is spread over columns.
type pivot struct {
	stages.Table
	columns []string
	spread  []pivotColumn // repeated for each combination of texts in columns
	several bool          // more than one value is spread
}

// over returns the spread table, whose rows have the texts of rows.
func (p *pivot) over(rows []string) (stages.Table, error) {
	out := stages.Table{Title: p.Title, Keys: rows, Ranked: p.Ranked && len(p.columns) == 0}
	across, columnOf := distinctTexts(p.Table, p.columns)
	for _, ids := range across {
		for _, c := range p.spread {
			out.Numbers = append(out.Numbers, p.column(c, ids))
		}
	}
	down, rowOf := distinctTexts(p.Table, rows)
	for _, ids := range down {
		undefined := slices.Repeat([]stages.Number{stages.Number(math.NaN())}, len(out.Numbers))
		out.Rows = append(out.Rows, stages.Row{Keys: ids, Numbers: undefined})
	}
	taken := map[[2]int]bool{}
	for i, r := range p.Rows {
		at := [2]int{rowOf[i], columnOf[i]}
		if taken[at] {
			return p.Table, fmt.Errorf("two rows fall on %s", strings.Join(slices.Concat(down[at[0]],
				across[at[1]]), ", "))
		}
		taken[at] = true
		for k, c := range p.spread {
			out.Rows[at[0]].Numbers[at[1]*len(p.spread)+k] = r.Numbers[c.number]
		}
	}
	return out, nil
}

// column returns the column that c becomes for a combination of texts.
func (p *pivot) column(c pivotColumn, ids []string) stages.Column {
	n := p.Numbers[c.number]
	name := c.of
	if len(p.columns) > 0 {
		n.Label = "" // it was of the column before it was spread
		if name = strings.Join(ids, " "); p.several {
			name += " " + c.of
		}
	}
	if n.Name = name + c.suffix; n.Marks != "" {
		n.Marks = name
	}
	return n
}

// A pivotColumn is a column of numbers that is spread: a value, an end of its interval, or its marks.
type pivotColumn struct {
	of     string // the value
	suffix string // what its name has after the value's
	number int    // its position among the numbers of the table
}

// pivotColumns lists the columns that are spread with each of values, in the order of the table.
func pivotColumns(numbers []stages.Column, values []string) (list []pivotColumn) {
	ends := intervals(numbers)
	belongs := func(n stages.Column, v string) (suffix string, ok bool) {
		switch {
		case n.Name == v:
			return "", true
		case n.Marks == v:
			return strings.TrimPrefix(n.Name, v), true
		case ends[v] == [2]string{}:
			return "", false
		}
		end := slices.Index([]string{ends[v][0], ends[v][1]}, n.Name)
		return [3]string{"", " low", " high"}[end+1], end >= 0
	}
	taken := map[int]bool{}
	for _, v := range values {
		for i, n := range numbers {
			if suffix, ok := belongs(n, v); ok && !taken[i] {
				taken[i] = true
				list = append(list, pivotColumn{v, suffix, i})
			}
		}
	}
	return list
}

// distinctTexts lists the distinct texts that rows have in some columns, and which of them each row has.
func distinctTexts(t stages.Table, columns []string) (distinct [][]string, of []int) {
	at := map[string]int{}
	for _, r := range t.Rows {
		ids := make([]string, len(columns))
		for i, name := range columns {
			ids[i] = r.Keys[slices.Index(t.Keys, name)]
		}
		k, ok := at[fmt.Sprintf("%q", ids)]
		if !ok {
			k = len(distinct)
			at[fmt.Sprintf("%q", ids)], distinct = k, append(distinct, ids)
		}
		of = append(of, k)
	}
	return distinct, of
}

// namesOf returns an error if names has a name twice, or one that isn't known.
func namesOf(what string, known, names []string) error {
	for i, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("the table has no column of %ss called %q; it has %s", what, name,
				strings.Join(known, ", "))
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("column %q is named twice", name)
		}
	}
	return nil
}
