package publish

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/typeset"
	"github.com/runexp/runexp/stages"
)

// get returns the text in a column, "" for none.
func (r *TableRow) get(column string) string {
	s, _ := r.lookup(column)
	return s
}

func (r *TableRow) lookup(column string) (string, bool) {
	i, ok := r.places[column]
	if !ok && r.places == nil {
		i = slices.Index(r.columns, column)
		ok = i >= 0
	}
	if !ok {
		return "", false
	}
	return r.values[i], true
}

// number returns the number in a column, NaN for an undefined one, and reports whether there is one.
func (r *TableRow) number(column string) (float64, bool) {
	s, ok := r.lookup(column)
	x, isNumber := typeset.Parse(s)
	return x, ok && isNumber
}

// String is equal for rows with the same texts in the same columns, whatever the order of these.
func (r *TableRow) String() string {
	pairs := make([]string, len(r.columns))
	for i, c := range r.columns {
		pairs[i] = fmt.Sprintf("%q:%q", c, r.values[i])
	}
	slices.Sort(pairs)
	return strings.Join(pairs, " ")
}

// texts joins the texts in some columns.
func (r *TableRow) texts(columns []string) string {
	texts := make([]string, len(columns))
	for i, c := range columns {
		texts[i] = r.get(c)
	}
	return strings.Join(texts, ", ")
}

func (r *TableRow) at() at { return at{r.Cell, ""} }

func (r *TableRow) key() string {
	if r.table == nil {
		return ""
	}
	return r.texts(r.table.Keys)
}

// usable reports whether every column of numbers has a number, or nothing for an undefined one.
func (r *TableRow) usable() bool {
	return r.table != nil && !slices.ContainsFunc(r.table.Numbers, func(n stages.Column) bool {
		_, ok := r.number(n.Name)
		return !ok
	})
}

func (r *TableRow) compare(now *TableRow, p *report) bool {
	ok := true
	for _, n := range now.table.Numbers {
		old, _ := r.number(n.Name)
		new, _ := now.number(n.Name)
		near := p.number(now.key(), n.Name, old, new, n.Tolerance, typeset.Digits)
		ok = ok && near
	}
	if ok {
		p.reproduced.Rows++
	}
	return ok
}

func (r *TableRow) published(now *TableRow) *TableRow {
	p := *now
	p.pos, p.values = r.pos, slices.Clone(now.values)
	for _, n := range now.table.Numbers {
		x, _ := r.number(n.Name)
		p.values[slices.Index(p.columns, n.Name)] = typeset.Format(x, typeset.Digits)
	}
	return &p
}

// mergeTables merges tables/*.csv. A file has one output: the tables of all cells of the stage, below each
// other.
func (m *merge) mergeTables() {
	for _, o := range m.outputs["tables"] {
		if len(o.cells) == 0 {
			continue
		}
		s := m.sheet(o)
		var now []*TableRow
		for _, p := range o.cells {
			now = append(now, s.rows(p.cell, p.table, m.run.Order)...)
		}
		for i, r := range m.disk.tables[s.File] {
			r.pos, r.Cell = i, s.owner(r)
			r.table = s.Tables[r.Cell]
		}
		s.Rows = mergeFile(m, s.File, s.Stage, m.disk.tables[s.File], now)
		rewritten := map[string]bool{} // cells with a row that wasn't published
		for _, r := range s.Rows {
			rewritten[r.Cell] = rewritten[r.Cell] || r.pos < 0
			for _, c := range r.columns {
				if r.Old && !slices.Contains(s.Columns(), c) {
					s.Extra = append(s.Extra, c)
				}
			}
		}
		slices.Sort(s.Extra)
		slices.SortStableFunc(s.Rows, func(x, y *TableRow) int {
			// The order of the rows of a ranked table is a result, and stays as it is published.
			if t := x.table; x.Cell == y.Cell && t != nil && t.Ranked && !rewritten[x.Cell] &&
				m.standing(x.Cell) == current {
				return cmp.Compare(x.pos, y.pos)
			}
			return cmp.Compare(x.Cell, y.Cell)
		})
		m.out.Sheets = append(m.out.Sheets, s)
	}
}

// sheet returns the sheet of an output without its rows.
func (m *merge) sheet(o *output) *Sheet {
	s := &Sheet{File: o.name + ".csv", Stage: o.stage, Tables: map[string]*stages.Table{}}
	add := func(list *[]string, names ...string) {
		for _, name := range names {
			if name != "" && !slices.Contains(*list, name) {
				*list = append(*list, name)
			}
		}
	}
	for _, p := range o.cells {
		s.Tables[p.cell.Name] = p.table
		add(&s.Titles, p.table.Title)
		add(&s.Keys, p.table.Keys...)
		for _, n := range p.table.Numbers {
			if !slices.Contains(s.Columns(), n.Name) {
				s.Numbers = append(s.Numbers, n)
			}
		}
	}
	for _, c := range m.cells {
		for _, at := range c.Coord {
			if c.Stage == o.stage {
				add(&s.axes, at.Axis)
			}
		}
	}
	slices.Sort(s.axes)
	for _, axis := range s.axes { // an axis with the name of another column is called "cell.axis"
		for slices.Contains(s.Columns(), axis) {
			axis = "cell." + axis
		}
		s.Axes = append(s.Axes, axis)
	}
	return s
}

// title returns the title of the cells' tables or, if they have several, the name of the file.
func (s *Sheet) title() string {
	if len(s.Titles) == 1 {
		return s.Titles[0]
	}
	return path.Base(strings.TrimSuffix(s.File, ".csv"))
}

// owner returns the name of the cell that has a row on disk, "" if the row lacks the column of an axis.
func (s *Sheet) owner(r *TableRow) string {
	if len(s.axes) == 0 {
		return s.Stage
	}
	var at []string
	for i, column := range s.Axes {
		id, ok := r.lookup(column)
		if !ok {
			return ""
		}
		at = append(at, s.axes[i]+"="+id)
	}
	return s.Stage + "[" + strings.Join(at, ",") + "]"
}

// rows returns the rows of a cell's table. Unless their order is a result, they are sorted by the ids in
// them: they stay where they are when the experiment reorders an axis.
func (s *Sheet) rows(c *Cell, t *stages.Table, order stages.Order) []*TableRow {
	var columns, at []string
	for i, axis := range s.axes {
		if k := slices.IndexFunc(c.Coord, func(at stages.Coord) bool { return at.Axis == axis }); k >= 0 {
			columns, at = append(columns, s.Axes[i]), append(at, c.Coord[k].ID)
		}
	}
	columns = append(columns, t.Keys...)
	for _, n := range t.Numbers {
		columns = append(columns, n.Name)
	}
	rows := slices.Clone(t.Rows)
	if !t.Ranked {
		slices.SortStableFunc(rows, func(x, y stages.Row) int {
			for i, k := range t.Keys {
				if c := cmp.Compare(x.Keys[i], y.Keys[i]); order[k] != nil && c != 0 {
					return c
				}
			}
			return 0
		})
	}
	var out []*TableRow
	for _, row := range rows {
		values := slices.Clone(at)
		for _, k := range row.Keys {
			values = append(values, typeset.Field(k))
		}
		for _, x := range row.Numbers {
			values = append(values, typeset.Format(float64(x), typeset.Digits))
		}
		r := &TableRow{Cell: c.Name, table: t, columns: columns, values: values, pos: -1}
		out = append(out, r)
	}
	return out
}

// Shown returns the rows in the experiment's order of cells and ids. Rows of ranked tables keep their order.
func (f *Folder) Shown(s *Sheet) []*TableRow {
	rows := slices.Clone(s.Rows)
	slices.SortStableFunc(rows, func(x, y *TableRow) int {
		if c := f.compareShown(x.Cell, y.Cell); c != 0 || x.table == nil || x.table.Ranked {
			return c
		}
		for _, k := range x.table.Keys {
			if c := f.Order.Compare(k, x.get(k), y.get(k)); c != 0 && f.Order[k] != nil {
				return c
			}
		}
		return 0
	})
	return rows
}

// gridOf returns the first rows of a table for people, at most limit of them.
func (f *Folder) gridOf(s *Sheet, limit int) *typeset.Grid {
	columns := s.Columns()
	var rows [][]string
	for _, r := range f.Shown(s) {
		texts := make([]string, len(columns))
		for i, c := range columns {
			texts[i] = f.label(s, i, r.get(c))
		}
		rows = append(rows, texts)
	}
	return typeset.NewGrid(columns, s.Numbers, rows).First(limit)
}

// label returns the text that people read in the place of another one in a column of a table: the label of
// an id on the column's axis or, since a column may refer to one, on the axis of another column.
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
