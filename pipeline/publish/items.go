package publish

import (
	"cmp"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/typeset"
)

func (l *ItemLine) at() at                        { return at{l.Cell, ""} }
func (l *ItemLine) rows() int                     { return len(l.IDs) }
func (l *ItemLine) published(*ItemLine) *ItemLine { return l }
func (l *ItemLine) String() string                { return string(encodeItems([]*ItemLine{l})) }

func (l *ItemLine) compare(now *ItemLine, r *report) bool {
	if !slices.Equal(l.IDs, now.IDs) { // though the definitions, which cover them, are equal
		r.differs("", "items", count(len(l.IDs), "item"), count(len(now.IDs), "other"))
		return false
	}
	ok := true
	for i, id := range l.IDs {
		if r.number(id, "value", l.Values[i], now.Values[i], now.tolerance, itemDigits) {
			r.reproduced.Items++
		} else {
			ok = false
		}
	}
	return ok
}

// mergeItems merges the scores in items/*.csv.
func (m *merge) mergeItems() {
	for _, o := range m.outputs["items"] {
		var now []*ItemLine
		for _, p := range o.cells {
			l := &ItemLine{Cell: p.cell.Name}
			l.tolerance = max(p.score.Measure.Tolerance, p.score.Measure.ItemTolerance)
			l.IDs, l.Values = sorted(p.score.Items)
			now = append(now, l)
		}
		if len(now) > 0 {
			m.addItems(o, mergeFile(m, o.name+".csv", o.stage, m.disk.items[o.name], now))
		}
	}
}

// sorted returns the escaped ids of items in their order, with their scores. It returns the run's own
// slices if the ids are sorted and need no escapes.
func sorted(items Items) (ids []string, values []float64) {
	last, same := "", true
	for _, id := range items.IDs {
		same = same && last <= id && typeset.Field(id) == id
		last = id
	}
	if same {
		return items.IDs, items.Values
	}
	order := make([]int, len(items.IDs))
	for i, id := range items.IDs {
		ids, order[i] = append(ids, typeset.Field(id)), i
	}
	slices.SortFunc(order, func(i, k int) int { return cmp.Compare(ids[i], ids[k]) })
	slices.Sort(ids)
	for _, i := range order {
		values = append(values, items.Values[i])
	}
	return ids, values
}

// addItems adds the files that have the items of one score. The first cell, and all with the same items,
// are in the file with the score's name. The names of further files have a digest of their items in
// addition.
func (m *merge) addItems(o *output, lines []*ItemLine) {
	files := map[string]*ItemFile{}
	for _, l := range lines {
		name := o.name + ".csv"
		if !slices.Equal(l.IDs, lines[0].IDs) {
			name = o.name + "@" + itemsDigest(l.IDs) + ".csv"
		}
		f := files[name]
		if f == nil {
			f = &ItemFile{Name: name, Score: scoreName(o.stage, o.port), Cell: l.Cell}
			files[name], m.out.Items = f, append(m.out.Items, f)
		}
		f.Lines = append(f.Lines, l)
	}
}

// fitItems decides which files of items are written: as many as the budget has room for, the smallest first.
// README.md, which names the others, is counted at its longest, when it names all of them.
func (m *merge) fitItems() {
	room, files := budget, m.out.Items
	for _, f := range files {
		f.Stored = true
	}
	for _, b := range render(m.out) {
		room -= len(b)
	}
	size := map[*ItemFile]int{}
	for _, f := range files {
		size[f] = sizeOfItems(f.Lines)
		room -= size[f]
	}
	slices.SortFunc(files, func(a, b *ItemFile) int {
		return cmp.Or(cmp.Compare(size[b], size[a]), cmp.Compare(a.Name, b.Name))
	})
	for _, f := range files {
		if f.Stored = room < 0; !f.Stored {
			continue
		}
		room += size[f]
		base, _, _ := strings.Cut(strings.TrimSuffix(f.Name, ".csv"), "@")
		for _, l := range f.Lines {
			*m.report(base+".csv", l.Cell) = report{} // an entry that isn't published isn't compared
		}
		f.Lines = nil
	}
}
