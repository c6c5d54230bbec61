package publish

import (
	"cmp"
	"maps"
	"slices"

	"github.com/runexp/runexp/pipeline/typeset"
)

// lineOf returns the line of a finished cell.
func lineOf(c *Cell) *Line {
	l := &Line{Cell: c.Name, Cells: c.Cells, Definition: c.Definition.Short(), MadeBy: c.MadeBy, N: c.N,
		Items: c.Items, Params: c.Params, Shown: c.Shown}
	l.Rows = map[string]int{}
	for _, s := range c.Scores {
		value, undefined := mean(s.Items.Values)
		l.N = len(s.Items.IDs)
		m := s.Measure
		l.Means = append(l.Means, Mean{
			Port: s.Port, Direction: m.Direction, Undefined: undefined,
			Value: typeset.RoundTo(value, typeset.Digits), Tolerance: m.Tolerance,
			ItemTolerance: max(m.Tolerance, m.ItemTolerance), Chance: m.Chance,
		})
	}
	slices.SortFunc(l.Means, func(a, b Mean) int { return cmp.Compare(a.Port, b.Port) })
	for _, t := range c.Tables {
		l.Rows[t.Port] = len(t.Table.Rows)
	}
	return l
}

func (l *Line) at() at         { return at{l.Cell, ""} }
func (l *Line) usable() bool   { return !l.other }
func (l *Line) String() string { return l.raw }

func (l *Line) compare(now *Line, r *report) bool {
	ok := r.count("n", l.N, now.N)
	for _, m := range now.Means {
		old := l.mean(m.Port)
		if old == nil {
			r.add(New, Row{})
			ok = false
			continue
		}
		prefix := ""
		if len(now.Means) > 1 {
			prefix = m.Port + " "
		}
		same := r.count(prefix+"undefined", old.Undefined, m.Undefined)
		near := r.number("", prefix+"mean", old.Value, m.Value, m.Tolerance, typeset.Digits)
		if near {
			r.reproduced.Scores++
		}
		ok = ok && same && near
	}
	if ok && len(now.Means) == 0 {
		r.reproduced.Cells++
	}
	return ok
}

func (l *Line) published(now *Line) *Line {
	p := *now
	p.N, p.MadeBy, p.Means = l.N, l.MadeBy, slices.Clone(now.Means)
	for i := range p.Means {
		if old := l.mean(p.Means[i].Port); old != nil {
			p.Means[i].Value, p.Means[i].Undefined = typeset.RoundTo(old.Value, typeset.Digits), old.Undefined
		}
	}
	return &p
}

// mergeLines merges the lines of cells/*.jsonl.
func (m *merge) mergeLines() {
	now := map[string][]*Line{} // by file
	for _, c := range m.cells {
		file := cellsFile(c.Name)
		lines := now[file]
		if c.State == Done {
			lines = append(lines, lineOf(c))
		}
		now[file] = lines // a file without a finished cell, too
	}
	for _, file := range slices.Sorted(maps.Keys(now)) {
		for _, l := range m.disk.lines[file] {
			c := m.finished[l.Cell]
			l.other = c == nil || l.Definition != c.Definition.Short()
		}
		m.out.Lines = append(m.out.Lines, mergeFile(m, file, "", m.disk.lines[file], now[file])...)
	}
	slices.SortStableFunc(m.out.Lines, func(a, b *Line) int {
		// Kept lines of two branches are in the order of their file.
		return cmp.Or(m.out.compareShown(a.Cell, b.Cell), cmp.Compare(a.raw, b.raw))
	})
}
