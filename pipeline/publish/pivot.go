package publish

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// Pivot spreads a table over columns. Rows with the same texts in the columns named by rows become one; it
// has the numbers named by values, with their intervals and marks, for each combination of texts in the
// columns named by columns. Texts in neither list follow those of rows. Without values it takes the first
// number, or all if columns is empty. A name that no column has is an error, and so are two rows that fall on
// one place; a place without a row is undefined.
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
	spread := pivotColumns(t.Numbers, values)
	out := stages.Table{Title: t.Title, Keys: rows, Ranked: t.Ranked && len(columns) == 0}
	across, _ := distinctTexts(t, columns)
	for _, ids := range across {
		for _, p := range spread {
			c := t.Numbers[p.number]
			base := strings.Join(ids, " ")
			if len(columns) == 0 {
				base = p.of
			} else if len(values) > 1 {
				base += " " + p.of
			}
			if len(columns) > 0 {
				c.Label = "" // of the column that was spread
			}
			if c.Name = base + p.suffix; c.Marks != "" {
				c.Marks = base
			}
			out.Numbers = append(out.Numbers, c)
		}
	}
	down, rowOf := distinctTexts(t, rows)
	_, columnOf := distinctTexts(t, columns)
	for _, ids := range down {
		undefined := slices.Repeat([]stages.Number{stages.Number(math.NaN())}, len(out.Numbers))
		out.Rows = append(out.Rows, stages.Row{Keys: ids, Numbers: undefined})
	}
	taken := map[[2]int]bool{}
	for i, r := range t.Rows {
		at := [2]int{rowOf[i], columnOf[i]}
		if taken[at] {
			return t, fmt.Errorf("two rows fall on %s", strings.Join(slices.Concat(down[at[0]],
				across[at[1]]), ", "))
		}
		taken[at] = true
		for k, p := range spread {
			out.Rows[at[0]].Numbers[at[1]*len(spread)+k] = r.Numbers[p.number]
		}
	}
	return out, nil
}

// A pivotColumn is a number that a pivot takes: a value, or an end of its interval, or its marks.
type pivotColumn struct {
	of     string // the value
	suffix string // of its column's name after the value's
	number int
}

// pivotColumns lists the numbers that come with values, in the table's order for each.
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

// distinctTexts lists the distinct texts of rows in some columns, and the place of each row among them.
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

// namesOf checks names of columns.
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
