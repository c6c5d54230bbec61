package publish

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// An itemFile is a file of items that this run has, as long as there is room for it.
type itemFile struct {
	name  string
	score string // for people
	cell  string // one of those in it
	bytes []byte // nil for one that is larger than a folder may be
	tally *tally
}

// mergeItems makes items/*.csv.
func (m *merge) mergeItems() error {
	for _, o := range m.outputs("items") {
		s := itemScore{name: m.names[o], label: scoreName(o.stage, o.port)}
		for _, c := range m.cells {
			for i := range c.Scores {
				if c.State == Done && c.Stage == o.stage && c.Scores[i].Port == o.port {
					s.cells = append(s.cells, c)
					s.scores = append(s.scores, &c.Scores[i])
				}
			}
		}
		if s.large() {
			m.items = append(m.items, &itemFile{name: s.name + ".csv", score: s.label, cell: s.cells[0].Name})
			continue
		}
		if err := m.mergeScore(&s); err != nil {
			return err
		}
	}
	return nil
}

// An itemScore is one score of the items of all cells of a stage.
type itemScore struct {
	name   string // of its files
	label  string
	cells  []*Cell // finished ones
	scores []*Score
}

// large reports whether the values alone are too many for a folder.
func (s *itemScore) large() bool {
	size := 0
	for _, sc := range s.scores {
		for i := range sc.Items.Len() {
			var b [32]byte
			if size += len(appendItem(b[:0], sc.Items.Value(i))) + 1; size > budget {
				return true
			}
		}
	}
	return false
}

// mergeScore compares the lines of a score with those on disk and makes its files.
func (m *merge) mergeScore(s *itemScore) error {
	disk := map[string][]*itemLine{}
	for _, name := range slices.Sorted(maps.Keys(m.disk)) {
		if isItemFile(name, s.name) {
			for _, l := range readItems(m.disk[name]) {
				disk[l.cell] = append(disk[l.cell], l)
			}
		}
	}
	var lines []*itemLine
	tallies := map[string]*tally{} // by cell
	for i, c := range s.cells {
		var known []string
		if len(lines) > 0 {
			known = lines[len(lines)-1].ids
		}
		l, err := itemLineOf(c, s.scores[i], known)
		if err != nil {
			return err
		}
		measure := s.scores[i].Measure
		tallies[c.Name] = m.mergeItemLine(s, c, max(measure.Tolerance, measure.ItemTolerance), l, disk[c.Name])
		if delete(disk, c.Name); len(l.ids) > 0 {
			lines = append(lines, l)
		}
	}
	for _, cell := range slices.Sorted(maps.Keys(disk)) {
		row := Row{File: s.name + ".csv", Cell: cell, Rows: len(idsOf(disk[cell]))}
		if !m.partial {
			m.tally.add(removed, row)
			continue
		}
		m.tally.add(kept, row)
		for i, l := range disk[cell] {
			if !slices.ContainsFunc(disk[cell][:i], func(o *itemLine) bool { return slices.Equal(o.ids, l.ids) && slices.Equal(o.values, l.values) }) {
				lines = append(lines, l)
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b *itemLine) int { return cmp.Compare(a.cell, b.cell) })
	names, files := itemFiles(s.name, lines)
	for _, name := range names {
		f := &itemFile{name: name, score: s.label, cell: files[name][0].cell, bytes: encodeItems(files[name]), tally: newTally()}
		for _, l := range files[name] {
			if t := tallies[l.cell]; t != nil {
				f.tally.join(t)
			}
		}
		m.items = append(m.items, f)
	}
	m.leaveLargest(budget) // so that no more than that is ever in memory
	return nil
}

// itemLineOf makes the line of a finished cell. known are the items of another, which
// most cells have too.
func itemLineOf(c *Cell, sc *Score, known []string) (*itemLine, error) {
	n := sc.Items.Len()
	l := &itemLine{cell: c.Name, ids: known, numbers: make([]float64, n)}
	same := n == len(known)
	for i := range n {
		id, err := sc.Items.ID(i)
		if err != nil {
			return nil, err
		}
		if same = same && Field(id) == known[i]; !same {
			break
		}
		l.numbers[i] = sc.Items.Value(i)
	}
	if same {
		return l, nil
	}
	ids := make([]string, n)
	for i := range ids {
		id, err := sc.Items.ID(i)
		if err != nil {
			return nil, err
		}
		ids[i] = Field(id)
		l.numbers[i] = sc.Items.Value(i)
	}
	if l.ids = ids; slices.IsSorted(ids) {
		return l, nil
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(ids[a], ids[b]) })
	for k, i := range order {
		l.numbers[k] = sc.Items.Value(i)
	}
	slices.Sort(ids)
	if slices.Equal(ids, known) {
		l.ids = known
	}
	return l, nil
}

// mergeItemLine compares a line with those on disk for the same cell, and takes over
// what is a claim.
func (m *merge) mergeItemLine(s *itemScore, c *Cell, tolerance float64, now *itemLine, disk []*itemLine) *tally {
	t := newTally()
	file := s.name + ".csv"
	claim := m.itemClaim(c, tolerance, now, disk)
	if claim == nil {
		if n := len(now.ids); n > 0 {
			t.add(addedOr(rewritten, len(disk) > 0), Row{File: file, Cell: c.Name, Rows: n})
		}
		for _, id := range idsOf(disk) {
			if _, ok := slices.BinarySearch(now.ids, id); !ok {
				t.add(removed, Row{File: file, Cell: c.Name})
			}
		}
		return t
	}
	published := map[string]string{}
	for i, id := range claim.ids {
		published[id] = claim.values[i]
	}
	now.values = make([]string, len(now.ids))
	for i, id := range now.ids {
		now.values[i] = formatItem(now.numbers[i])
		old := published[id]
		delete(published, id)
		x, ok := parseItem(old)
		if !ok {
			t.add(addedOr(rewritten, old != ""), Row{File: file, Cell: c.Name})
			continue
		}
		old = formatItem(x)
		d, ok := withinItem(old, now.numbers[i], tolerance)
		t.deviation(s.label, d, tolerance)
		if ok {
			t.counts.Items++
		} else {
			t.add(differs, Row{File: file, Cell: c.Name, Item: id, Column: "value", Old: old, New: now.values[i], Deviation: d, Tolerance: tolerance})
		}
		now.values[i] = old
	}
	for _, id := range slices.Sorted(maps.Keys(published)) {
		if _, ok := parseItem(published[id]); !ok {
			continue
		}
		t.add(differs, Row{File: file, Cell: c.Name, Item: id, Column: "value", Old: published[id], New: "not there", Deviation: math.Inf(1)})
		at, _ := slices.BinarySearch(now.ids, id)
		now.ids, now.values = slices.Insert(slices.Clone(now.ids), at, id), slices.Insert(now.values, at, published[id])
	}
	return t
}

// idsOf returns the items of some lines.
func idsOf(lines []*itemLine) []string {
	var ids []string
	for _, l := range lines {
		ids = append(ids, l.ids...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// addedOr returns o where something was there before, else added.
func addedOr(o outcome, before bool) outcome {
	if before {
		return o
	}
	return added
}

// itemClaim finds the claim about a cell's items: a line that holds, else the first.
func (m *merge) itemClaim(c *Cell, tolerance float64, now *itemLine, disk []*itemLine) *itemLine {
	if m.standing(c) == unclaimed || len(disk) == 0 {
		return nil
	}
	for _, l := range disk {
		holds := slices.Equal(l.ids, now.ids)
		for i := 0; holds && i < len(l.ids); i++ {
			var x float64
			if x, holds = parseItem(l.values[i]); holds {
				_, holds = withinItem(formatItem(x), now.numbers[i], tolerance)
			}
		}
		if holds {
			return l
		}
	}
	if m.standing(c) == contested {
		return nil
	}
	return disk[0]
}

// size is that of the file, more than any other's for one that a folder can't hold.
func (f *itemFile) size() int {
	if f.bytes == nil {
		return math.MaxInt
	}
	return len(f.bytes)
}

// leaveLargest sorts the files, the largest first, and leaves in the store as many of
// them as it takes for the others to fit into room.
func (m *merge) leaveLargest(room int) {
	slices.SortStableFunc(m.items, func(a, b *itemFile) int {
		return cmp.Or(cmp.Compare(b.size(), a.size()), cmp.Compare(a.name, b.name))
	})
	total := 0
	for _, f := range m.items {
		total += len(f.bytes)
	}
	for _, f := range m.items {
		if total <= room {
			return
		}
		total -= len(f.bytes)
		f.bytes = nil
	}
}

// fitItems adds the files of items that the folder has room for.
func (m *merge) fitItems() {
	m.large = m.items // README.md is never longer than when it names them all
	room := budget - m.size() - len(m.readme())
	m.large = nil
	m.leaveLargest(room)
	for _, f := range m.items {
		if f.bytes == nil {
			m.large = append(m.large, f)
			continue
		}
		m.files[f.name] = f.bytes
		m.tally.join(f.tally)
	}
}
