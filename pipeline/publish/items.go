package publish

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// An item is the score of one item.
type item struct {
	cell, id  string
	value     float64
	tolerance float64
}

func (i item) at() at         { return at{i.cell, ""} }
func (i item) key() string    { return i.id }
func (i item) usable() bool   { return true }
func (i item) keep()          {}
func (i item) String() string { return i.id + "=" + formatItem(i.value) }

func (i item) compare(now item, r *report) bool {
	ok := r.number(i.id, "value", i.value, now.value, now.tolerance, itemDigits)
	if ok {
		r.reproduced.Items++
	}
	return ok
}

func (i item) published(now item) item {
	return item{i.cell, i.id, roundTo(i.value, itemDigits), now.tolerance}
}

// mergeItems merges the scores in items/*.csv.
func (m *merge) mergeItems() {
	for _, o := range m.outputs["items"] {
		if len(o.parts) == 0 {
			continue
		}
		label := scoreName(o.stage, o.port)
		if o.large() {
			f := &ItemFile{Name: o.name + ".csv", Score: label, Cell: o.parts[0].cell.Name}
			f.Stored, f.size = true, math.MaxInt
			m.out.Items = append(m.out.Items, f)
			continue
		}
		var now []item
		for _, p := range o.parts {
			now = append(now, itemsOf(p.cell.Name, p.score)...)
		}
		m.addItems(o.name, label, mergeFile(m, o.name+".csv", o.stage, m.disk.items(o.name), now))
		m.storeLargest(budget) // so that no more than a folder's worth is in memory
	}
}

// large reports whether the values alone are too many for a folder.
func (o *output) large() bool {
	size := 0
	for _, p := range o.parts {
		for _, x := range p.score.Items.Values {
			if size += len(formatItem(x)) + 1; size > budget {
				return true
			}
		}
	}
	return false
}

// itemsOf returns the items of a finished cell, sorted.
func itemsOf(cell string, s *Score) []item {
	rows := make([]item, len(s.Items.IDs))
	for i, id := range s.Items.IDs {
		rows[i] = item{cell, Field(id), s.Items.Values[i], max(s.Measure.Tolerance, s.Measure.ItemTolerance)}
	}
	slices.SortFunc(rows, func(a, b item) int { return cmp.Compare(a.id, b.id) })
	return rows
}

// addItems adds the files that the items of one score go to. Cells with the items of the first one share the
// file called like the score; those with other items have files of their own, named by these.
func (m *merge) addItems(name, label string, rows []item) {
	files := map[string]*ItemFile{}
	lines := linesOf(rows)
	for _, l := range lines {
		file := name + ".csv"
		if slices.Equal(l.IDs, lines[0].IDs) {
			l.IDs = lines[0].IDs
		} else {
			file = name + "@" + itemsDigest(l.IDs) + ".csv"
		}
		f := files[file]
		if f == nil {
			f = &ItemFile{Name: file, Score: label, Cell: l.Cell}
			files[file], m.out.Items = f, append(m.out.Items, f)
		}
		f.Lines = append(f.Lines, l)
	}
	for _, f := range files {
		f.size = len(encodeItems(f.Lines))
	}
}

// linesOf makes a line a cell, with the first score of each item.
func linesOf(rows []item) (lines []*ItemLine) {
	slices.SortStableFunc(rows, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.cell, b.cell), cmp.Compare(a.id, b.id))
	})
	for i, row := range rows {
		if i == 0 || rows[i-1].cell != row.cell {
			lines = append(lines, &ItemLine{Cell: row.cell})
		} else if rows[i-1].id == row.id {
			continue // of another branch
		}
		l := lines[len(lines)-1]
		l.IDs, l.Values = append(l.IDs, row.id), append(l.Values, row.value)
	}
	return lines
}

// storeLargest sorts the files, the largest first, and leaves in the store as many of them as it takes for
// the others to fit into room.
func (m *merge) storeLargest(room int) {
	files := m.out.Items
	slices.SortFunc(files, func(a, b *ItemFile) int {
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.Name, b.Name))
	})
	for _, f := range files {
		if !f.Stored {
			room -= f.size
		}
	}
	for _, f := range files {
		if room < 0 && !f.Stored {
			room += f.size
			base, _, _ := strings.Cut(strings.TrimSuffix(f.Name, ".csv"), "@")
			for _, l := range f.Lines {
				*m.report(base+".csv", l.Cell) = report{} // what isn't published claims nothing
			}
			f.Stored, f.Lines, f.size = true, nil, math.MaxInt
		}
	}
}

// fitItems decides which files of items the folder has room for, and returns its files.
func (m *merge) fitItems() map[string][]byte {
	room := budget
	files := render(m.out)
	for _, b := range files {
		room -= len(b)
	}
	if room >= 0 {
		return files
	}
	all := *m.out
	all.Items = nil
	for _, f := range m.out.Items {
		all.Items = append(all.Items, &ItemFile{Name: f.Name, Score: f.Score, Cell: f.Cell, Stored: true})
	}
	room = budget // README.md is never longer than when it names all files as stored
	for _, b := range render(&all) {
		room -= len(b)
	}
	m.storeLargest(room)
	return render(m.out)
}
