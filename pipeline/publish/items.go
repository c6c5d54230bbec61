package publish

import (
	"cmp"
	"github.com/runexp/runexp/pipeline/typeset"
	"slices"
	"strings"
)

func (l *ItemLine) at() at                        { return at{l.Cell, ""} }
func (l *ItemLine) rows() int                     { return len(l.IDs) }
func (l *ItemLine) published(*ItemLine) *ItemLine { return l }
func (l *ItemLine) String() string                { return string(encodeItems([]*ItemLine{l})) }

func (l *ItemLine) compare(now *ItemLine, r *report) bool {
	if !slices.Equal(l.IDs, now.IDs) { // which a definition covers
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

// mergeItems merges the scores in items/*.csv, and leaves in the store those that the folder has no room for.
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

// sorted returns the ids of items, as the files have them, and their scores in the order of the ids. Both are
// the run's own where they are so already.
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

// addItems adds the files that the items of one score go to. Cells with the items of the first one share the
// file called like the score; those with other items have files of their own, named by these.
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

// fitItems leaves in the store the largest files of items, as many as it takes for the folder to fit into its
// budget. README.md is never longer than when it names all of them.
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
			*m.report(base+".csv", l.Cell) = report{} // what isn't published claims nothing
		}
		f.Lines = nil
	}
}
