package publish

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// mergeSheet compares the sheet with the file on disk and decides its rows.
func (m *merge) mergeSheet(s *sheet) {
	byCell := map[string][]*record{}
	disk, _ := readSheet(m.disk[s.file])
	for i, r := range disk {
		r.pos = i
		r.cell = s.owner(r)
		byCell[r.cell] = append(byCell[r.cell], r)
	}
	blocks := map[string]*block{}
	for _, b := range s.blocks {
		blocks[b.cell.Name] = b
	}
	for _, b := range s.blocks {
		s.rows = append(s.rows, m.mergeBlock(s, b, byCell[b.cell.Name])...)
	}
	for name, rows := range byCell {
		if blocks[name] != nil {
			continue
		}
		seen := map[string]bool{}
		for _, r := range rows {
			if !m.partial || m.definitions[name] == nil {
				m.tally.add(removed, Row{File: s.file, Cell: name})
				continue
			}
			if key := r.fields.String(); !seen[key] {
				seen[key] = true
				r.old = true
				s.rows = append(s.rows, r)
				m.tally.add(kept, Row{File: s.file, Cell: name})
				for _, column := range r.fields.columns {
					if !slices.Contains(s.columns(), column) {
						s.extra = append(s.extra, column)
					}
				}
			}
		}
	}
	slices.SortStableFunc(s.rows, func(a, b *record) int {
		if a.cell != b.cell {
			return cmp.Compare(a.cell, b.cell)
		}
		if blocks[a.cell] != nil {
			return 0
		}
		return cmp.Compare(a.pos, b.pos)
	})
	slices.Sort(s.extra)
}

// mergeBlock compares the rows of a finished cell with those on disk.
func (m *merge) mergeBlock(s *sheet, b *block, disk []*record) []*record {
	key := func(r *record) string {
		var k strings.Builder
		for _, column := range b.keys {
			fmt.Fprintf(&k, "%q,", r.fields.get(column))
		}
		return k.String()
	}
	byKey := map[string][]*record{}
	for _, r := range disk {
		byKey[key(r)] = append(byKey[key(r)], r)
	}
	out := make([]*record, 0, len(b.rows))
	columns, standing := s.columnsOf(b), m.standing(b.cell)
	complete := true
	keys := map[string]bool{}
	for _, row := range b.rows {
		now := s.record(b, columns, row)
		k := key(now)
		keys[k] = true
		claim := m.claim(b, now, byKey[k])
		if claim == nil {
			before := slices.ContainsFunc(byKey[k], func(r *record) bool { return !r.used })
			m.tally.add(addedOr(rewritten, before), Row{File: s.file, Cell: b.cell.Name})
			now.pos = len(disk)
			complete = false
			out = append(out, now)
			continue
		}
		claim.used = true
		now.pos = claim.pos
		m.judge(s, b, now, claim)
		out = append(out, now)
	}
	if b.ranked && complete && reordered(b, out) {
		slices.SortStableFunc(out, func(x, y *record) int { return cmp.Compare(x.pos, y.pos) })
	}
	gone := map[string]bool{}
	for _, r := range disk {
		k := key(r)
		if keys[k] {
			continue // rewritten, or a second claim about a row
		}
		if standing != claimed || !readable(b, r) {
			m.tally.add(removed, Row{File: s.file, Cell: b.cell.Name})
			continue
		}
		if gone[k] {
			continue
		}
		gone[k] = true
		m.tally.add(differs, Row{File: s.file, Cell: b.cell.Name, Item: item(b, r), Column: "row", Old: "there", New: "not there", Deviation: math.Inf(1)})
		out = append(out, r)
	}
	return out
}

// claim finds the claim about a row: one that holds, else the first.
func (m *merge) claim(b *block, now *record, disk []*record) *record {
	if m.standing(b.cell) == unclaimed {
		return nil
	}
	var first *record
	for _, r := range disk {
		if r.used || !readable(b, r) {
			continue
		}
		if first == nil {
			first = r
		}
		holds := true
		for _, n := range b.numbers {
			_, ok := withinText(r.fields.get(n.Name), now.fields.get(n.Name), n.Tolerance)
			holds = holds && ok
		}
		if holds {
			return r
		}
	}
	if m.standing(b.cell) == contested {
		return nil
	}
	return first
}

// readable reports whether a record has a number, or nothing, wherever there
// should be one.
func readable(b *block, r *record) bool {
	for _, n := range b.numbers {
		text, ok := r.fields.lookup(n.Name)
		if !ok {
			return false
		}
		if _, ok := parse(text); !ok {
			return false
		}
	}
	return true
}

func withinText(published, now string, tolerance float64) (float64, bool) {
	x, _ := parse(published)
	y, _ := parse(now)
	return within(x, y, tolerance)
}

// judge compares a row with its claim, whose numbers it takes.
func (m *merge) judge(s *sheet, b *block, now, claim *record) {
	ok := true
	for _, n := range b.numbers {
		old, new := claim.fields.get(n.Name), now.fields.get(n.Name)
		d, near := withinText(old, new, n.Tolerance)
		m.tally.deviation(s.column(n.Name), d, n.Tolerance)
		if !near {
			ok = false
			m.tally.add(differs, Row{File: s.file, Cell: b.cell.Name, Item: item(b, now), Column: n.Name, Old: old, New: new, Deviation: d, Tolerance: n.Tolerance})
		}
		x, _ := parse(old)
		now.fields.set(n.Name, format(x))
	}
	if ok {
		s.count(&m.tally.counts)
	}
}

// item names a row by its keys.
func item(b *block, r *record) string {
	var parts []string
	for _, k := range b.keys {
		parts = append(parts, r.fields.get(k))
	}
	return strings.Join(parts, ",")
}

// reordered reports whether the rows on disk may stand as they do although this
// run has another order: then what changed places must be as good as equal in
// some column.
func reordered(b *block, rows []*record) bool {
	if slices.IsSortedFunc(rows, func(x, y *record) int { return cmp.Compare(x.pos, y.pos) }) || len(rows) > 2000 {
		return false
	}
	for i, x := range rows {
		for j := i + 1; j < len(rows); j++ {
			if rows[j].pos > x.pos {
				continue
			}
			tie := false
			for k, n := range b.numbers {
				_, ok := within(float64(b.rows[i].numbers[k]), float64(b.rows[j].numbers[k]), 2*n.Tolerance)
				tie = tie || ok && n.Tolerance > 0
			}
			if !tie {
				return false
			}
		}
	}
	return true
}
