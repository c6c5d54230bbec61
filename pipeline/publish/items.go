package publish

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// An item is the score of one item.
type item struct {
	id        string
	value     float64
	tolerance float64
}

func (i item) key() string    { return i.id }
func (i item) usable() bool   { return true }
func (i item) String() string { return i.id + "=" + formatItem(i.value) }

func (i item) compare(now item, r *report) bool {
	ok := r.number(i.id, "value", i.value, now.value, now.tolerance, itemDigits)
	if ok && r != nil {
		r.reproduced.Items++
	}
	return ok
}

func (i item) published(now item) item {
	return item{i.id, roundTo(i.value, itemDigits), now.tolerance}
}

// mergeItems merges the scores in items/*.csv.
func (m *merge) mergeItems() {
	for _, o := range m.outputs {
		if o.folder != "items" {
			continue
		}
		var cells []*Cell
		var scores []*Score
		for _, c := range m.cells {
			if i := slices.IndexFunc(c.Scores, func(s Score) bool { return s.Port == o.port }); c.Stage == o.stage && i >= 0 {
				cells, scores = append(cells, c), append(scores, &c.Scores[i])
			}
		}
		name, label := m.names[o], scoreName(o.stage, o.port)
		if tooMany(scores) {
			m.add(itemFile{ItemFile: &ItemFile{Name: name + ".csv", Score: label, Cell: cells[0].Name}, size: math.MaxInt})
			continue
		}
		var now []group[item]
		for i, c := range cells {
			now = append(now, group[item]{at: at{cell: c.Name}, rows: itemsOf(scores[i])})
		}
		m.addItems(name, label, mergeFile(m, name+".csv", m.disk.items(name), now))
	}
}

// tooMany reports whether the values alone are too many for a folder.
func tooMany(scores []*Score) bool {
	size := 0
	for _, s := range scores {
		for _, x := range s.Items.Values {
			if size += len(formatItem(x)) + 1; size > budget {
				return true
			}
		}
	}
	return false
}

// itemsOf returns the items of a finished cell, sorted.
func itemsOf(s *Score) []item {
	rows := make([]item, len(s.Items.IDs))
	for i, id := range s.Items.IDs {
		rows[i] = item{Field(id), s.Items.Values[i], max(s.Measure.Tolerance, s.Measure.ItemTolerance)}
	}
	slices.SortFunc(rows, func(a, b item) int { return cmp.Compare(a.id, b.id) })
	return rows
}

// An itemFile is a file of items as long as there may be room for it.
type itemFile struct {
	*ItemFile
	size    int // of the file; larger than any for one that stays in the store
	reports []*report
}

// addItems adds the files that the items of one score go to. Cells with the items of the first one share the
// file called like the score; those with other items have files of their own, named by these.
func (m *merge) addItems(name, label string, groups []group[item]) {
	files := map[string]*itemFile{}
	var ids []string // of the first cell
	for _, g := range groups {
		for i, l := range linesOf(g.cell, g.rows, ids) {
			if ids == nil {
				ids = l.IDs
			}
			file := name + ".csv"
			if !slices.Equal(l.IDs, ids) {
				file = name + "@" + itemsDigest(l.IDs) + ".csv"
			}
			if files[file] == nil {
				files[file] = &itemFile{ItemFile: &ItemFile{Name: file, Score: label, Cell: g.cell}}
			}
			f := files[file]
			f.Lines = append(f.Lines, l)
			if g.report != nil && i == 0 {
				f.reports = append(f.reports, g.report)
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		f := files[file]
		f.size = len(encodeItems(f.Lines))
		m.add(*f)
	}
}

// linesOf makes lines of a cell's items: several where it has one more than once, as two branches leave it.
// Lines with the items of known share them.
func linesOf(cell string, rows []item, known []string) []*ItemLine {
	slices.SortStableFunc(rows, func(a, b item) int { return cmp.Compare(a.id, b.id) })
	var lines []*ItemLine
	n := 0 // how often there was this item
	for i, row := range rows {
		if n++; i == 0 || rows[i-1].id != row.id {
			n = 1
		}
		if n > len(lines) {
			lines = append(lines, &ItemLine{Cell: cell})
		}
		l := lines[n-1]
		l.IDs, l.Values = append(l.IDs, row.id), append(l.Values, row.value)
	}
	for _, l := range lines {
		if slices.Equal(l.IDs, known) {
			l.IDs = known
		}
	}
	return lines
}

// add adds a file of items and leaves the largest in the store, so that no more than a folder's worth is in
// memory.
func (m *merge) add(f itemFile) {
	m.items = append(m.items, f)
	m.leaveLargest(budget)
}

// leaveLargest sorts the files, the largest first, and leaves in the store as many of them as it takes for
// the others to fit into room.
func (m *merge) leaveLargest(room int) {
	slices.SortStableFunc(m.items, func(a, b itemFile) int {
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.Name, b.Name))
	})
	total := 0
	for _, f := range m.items {
		if f.Lines != nil {
			total += f.size
		}
	}
	for i := range m.items {
		f := &m.items[i]
		if f.Lines == nil {
			continue
		}
		if total <= room {
			return
		}
		total -= f.size
		f.Lines, f.size = nil, math.MaxInt
	}
}

// fitItems decides which files of items the folder has room for.
func (m *merge) fitItems() {
	all := m.items
	for _, f := range all {
		m.out.Items = append(m.out.Items, &ItemFile{Name: f.Name, Score: f.Score, Cell: f.Cell})
	}
	room := budget // README.md is never longer than when it names them all
	for _, b := range render(m.out) {
		room -= len(b)
	}
	m.leaveLargest(room)
	m.out.Items = nil
	for _, f := range m.items {
		m.out.Items = append(m.out.Items, f.ItemFile)
		if f.Lines != nil {
			m.reports = append(m.reports, f.reports...)
		}
	}
}
