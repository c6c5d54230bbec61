package publish

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A standing says what the lines on disk make of a cell's rows, figures and texts,
// which don't carry definitions themselves.
type standing int8

const (
	unclaimed standing = iota // no line has the run's definition: they are rewritten
	contested                 // lines of two branches have different ones: what doesn't hold is rewritten
	claimed
)

// standing returns that of a finished cell.
func (m *merge) standing(c *Cell) standing {
	if m.forced[c.Name] {
		return unclaimed
	}
	s := unclaimed
	for _, definition := range m.definitions[c.Name] {
		if definition == c.Definition.Short() {
			s = claimed
		}
	}
	if s == claimed && len(m.definitions[c.Name]) > 1 {
		return contested
	}
	return s
}

// readCells reads the lines on disk and notes what they say of definitions and tables.
func (m *merge) readCells() {
	m.before, m.definitions, m.tables = map[string][]*line{}, map[string][]string{}, map[string]bool{}
	for name, b := range m.disk {
		if !strings.HasPrefix(name, "cells/") {
			continue
		}
		m.before[name] = readLines(b)
		for _, l := range m.before[name] {
			if !slices.Contains(m.definitions[l.cell], l.definition) {
				m.definitions[l.cell] = append(m.definitions[l.cell], l.definition)
			}
			for port := range l.rows {
				for _, base := range baseNames(l.stage(), port) {
					m.tables["tables/"+base+".csv"] = true
				}
			}
		}
	}
}

// mergeCells makes cells/*.jsonl.
func (m *merge) mergeCells() {
	files := map[string][]*Cell{}
	for _, c := range m.cells {
		name := "cells/" + escape(c.Stage) + ".jsonl"
		files[name] = append(files[name], c)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		lines := m.mergeLines(name, files[name])
		if len(lines) == 0 {
			continue
		}
		var b bytes.Buffer
		for _, l := range lines {
			b.Write(l.encode())
		}
		m.files[name] = b.Bytes()
		m.lines = append(m.lines, lines...)
	}
	slices.SortStableFunc(m.lines, func(a, b *line) int { return m.compareShown(a.cell, b.cell) })
}

func (m *merge) mergeLines(file string, cells []*Cell) []*line {
	disk := map[string][]*line{}
	for _, l := range m.before[file] {
		if !slices.ContainsFunc(disk[l.cell], func(o *line) bool { return o.raw == l.raw }) {
			disk[l.cell] = append(disk[l.cell], l)
		}
	}
	var out []*line
	keep := func(l *line) {
		l.old = true
		out = append(out, l)
		m.tally.add(kept, Row{File: file, Cell: l.cell})
	}
	for _, c := range cells {
		onDisk := disk[c.Name]
		delete(disk, c.Name)
		if c.State == Done {
			out = append(out, m.mergeLine(file, c, onDisk))
			continue
		}
		for _, l := range onDisk {
			keep(l)
		}
	}
	for name, gone := range disk {
		for _, l := range gone {
			if m.partial {
				keep(l)
			} else {
				m.tally.add(removed, Row{File: file, Cell: name})
			}
		}
	}
	slices.SortFunc(out, func(a, b *line) int { return cmp.Or(cmp.Compare(a.cell, b.cell), cmp.Compare(a.raw, b.raw)) })
	return out
}

// mergeLine compares a finished cell with the lines on disk and returns the
// line to publish.
func (m *merge) mergeLine(file string, c *Cell, disk []*line) *line {
	now := lineOf(c)
	var claim *line
	for _, l := range disk {
		// Of contradicting claims, as two branches leave them, the one that holds.
		if l.definition == now.definition && !m.forced[c.Name] && (claim == nil || !agree(claim, now) && agree(l, now)) {
			claim = l
		}
	}
	if claim == nil {
		o := added
		if len(disk) > 0 {
			o = rewritten
		}
		m.tally.add(o, Row{File: file, Cell: c.Name})
		return now
	}

	row := Row{File: file, Cell: c.Name, Deviation: math.Inf(1)}
	same := true
	exact := func(column string, old, new int) {
		if old != new {
			row.Column, row.Old, row.New = column, strconv.Itoa(old), strconv.Itoa(new)
			m.tally.add(differs, row)
			same = false
		}
	}
	exact("n", claim.n, now.n)
	for i := range now.scores {
		s := &now.scores[i]
		old := claim.score(s.port)
		if old == nil {
			m.tally.add(added, Row{File: file, Cell: c.Name})
			continue
		}
		name := scoreName(c.Stage, s.port)
		label := func(column string) string {
			if len(now.scores) > 1 {
				return s.port + " " + column
			}
			return column
		}
		exact(label("undefined"), old.undefined, s.undefined)
		d, ok := within(old.mean, s.mean, s.tolerance)
		if !ok {
			r := Row{File: file, Cell: c.Name, Column: label("mean"), Old: format(old.mean), New: format(s.mean), Deviation: d, Tolerance: s.tolerance}
			m.tally.add(differs, r)
		} else {
			m.tally.counts.Scores++
		}
		m.tally.deviation(fmt.Sprintf("%s mean", name), d, s.tolerance)
		s.mean, s.undefined = round(old.mean), old.undefined
	}
	if len(now.scores) == 0 && same {
		m.tally.counts.Cells++
	}
	for port := range now.rows {
		if n, ok := claim.rows[port]; ok {
			now.rows[port] = n
		}
	}
	now.n, now.madeBy = claim.n, claim.madeBy
	return now
}

// agree reports whether a claim holds.
func agree(claim, now *line) bool {
	for _, s := range now.scores {
		old := claim.score(s.port)
		if old == nil || old.undefined != s.undefined {
			return false
		}
		if _, ok := within(old.mean, s.mean, s.tolerance); !ok {
			return false
		}
	}
	return claim.n == now.n
}
