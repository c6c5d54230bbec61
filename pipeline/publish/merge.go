package publish

import (
	"cmp"
	"maps"
	"slices"
)

// An entry is a row, picture or text: one that is published in a file, or what a run has in its place.
type entry[T any] interface {
	at() at                        // the cell that has it and, for a text, the port
	key() string                   // distinguishes it from the cell's other entries in that file
	rows() int                     // how many rows it counts for
	usable() bool                  // reports whether it can be read and is of the run's definition
	compare(now T, r *report) bool // reports whether a run reproduces it with now
	published(now T) T             // now with the published values
	keep()                         // marks it as one of an earlier run
	String() string                // equal for equal entries
}

// common has what most entries have in common: a cell has one of them in a file, and all of them can be read.
type common struct {
	Old bool // of an earlier run
}

func (c *common) key() string  { return "" }
func (c *common) rows() int    { return 1 }
func (c *common) usable() bool { return true }
func (c *common) keep()        { c.Old = true }

// A standing is whether the published entries of a cell must be reproduced. It follows from the lines of the
// cell in cells/, since entries of other files have no definitions.
type standing int8

const (
	outdated  standing = iota // no line has the run's definition: the entries are rewritten
	contested                 // lines of two branches differ: only entries that are reproduced stay
	current                   // the definition is the run's: the entries stay, reproduced or not
)

// mergeRows pairs the entries that a finished cell has in a file with those that are published there, by
// their keys, and returns the entries to publish: of a current one the published values, reproduced or not,
// and else the run's.
func mergeRows[T entry[T]](s standing, r *report, published, now []T) []T {
	byKey := groupBy(published, T.key)
	out := make([]T, 0, len(now))
	seen := map[string]bool{}
	for _, n := range now {
		k := n.key()
		seen[k] = true
		i := choose(s, byKey[k], n)
		if i < 0 {
			outcome := New
			if len(byKey[k]) > 0 {
				outcome = Rewritten
			}
			r.add(outcome, Row{Rows: n.rows()})
			out = append(out, n)
			continue
		}
		p := byKey[k][i]
		p.compare(n, r)
		out = append(out, p.published(n))
		// The run may have several entries with this key.
		byKey[k] = slices.Delete(byKey[k], i, i+1)
	}
	for _, p := range published {
		switch k := p.key(); {
		case seen[k]: // rewritten, or the second entry with this key, of another branch
		case s != current || !p.usable():
			r.add(Removed, Row{Rows: p.rows()})
		default:
			seen[k] = true
			r.differs(k, "row", "there", "not there")
			out = append(out, p)
		}
	}
	return out
}

// choose returns the index of the published entry that stays in the place of now: the first one that now
// reproduces, or else the first usable one, and -1 where now is written.
func choose[T entry[T]](s standing, published []T, now T) int {
	if s == outdated {
		return -1
	}
	reproduced := func(p T) bool { return p.usable() && p.compare(now, &report{}) }
	if i := slices.IndexFunc(published, reproduced); i >= 0 || s == contested {
		return i
	}
	return slices.IndexFunc(published, T.usable)
}

// An at is a cell and, for a text, one of its ports.
type at struct{ cell, port string }

func (a at) compare(b at) int {
	return cmp.Or(cmp.Compare(a.cell, b.cell), cmp.Compare(a.port, b.port))
}

// mergeFile merges the entries that finished cells have in a file with those that are published there, and
// adds those of other cells that stay. Every finished cell of stage is compared, even one without entries.
// The result is sorted by cell.
func mergeFile[T entry[T]](m *merge, file, stage string, published, now []T) (out []T) {
	before, after := groupBy(published, T.at), groupBy(now, T.at)
	cells := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
	slices.SortFunc(cells, at.compare)
	for _, a := range slices.Compact(cells) {
		r := m.report(file, a.cell)
		switch {
		case m.finished[a.cell] != nil && (after[a] != nil || stageOf(a.cell) == stage):
			out = append(out, mergeRows(m.standing(a.cell), r, before[a], after[a])...)
		case m.keeps(a.cell):
			kept := distinct(before[a], T.String)
			for _, p := range kept {
				r.add(Kept, Row{Rows: p.rows()})
				p.keep()
			}
			out = append(out, kept...)
		default:
			for _, p := range before[a] {
				r.add(Removed, Row{Rows: p.rows()})
			}
		}
	}
	return out
}

func groupBy[T any, K comparable](list []T, key func(T) K) map[K][]T {
	groups := map[K][]T{}
	for _, x := range list {
		groups[key(x)] = append(groups[key(x)], x)
	}
	return groups
}

// merge is one comparison of a folder with a run's results.
type merge struct {
	run         *Results
	disk        *disk
	cells       []*Cell              // by name
	finished    map[string]*Cell     // by name
	forced      map[string]bool      // names of cells whose entries are outdated, whatever their definitions
	outputs     map[string][]*output // by the folder of their files
	definitions map[string][]string  // on disk, by cell
	out         *Folder
	reports     map[[2]string]*report // by file and cell
}

// mergeFolder merges the content of a folder with a run's results. What the cells in forced have on disk is
// rewritten.
func mergeFolder(d *disk, r *Results, forced map[string]bool) (*merge, error) {
	m := newMerge(d, r, forced)
	m.mergeLines()
	m.mergeItems()
	m.mergeTables()
	if err := m.mergePictures(); err != nil {
		return nil, err
	}
	m.mergePassages()
	for _, l := range m.out.Lines {
		if _, declared := m.out.place[l.Cell]; !declared {
			m.out.Gone = append(m.out.Gone, l.Cell)
		}
	}
	m.out.Gone = slices.Compact(slices.Sorted(slices.Values(m.out.Gone)))
	return m, nil
}

// newMerge begins a comparison: it has the cells of the run and the definitions on disk.
func newMerge(d *disk, r *Results, forced map[string]bool) *merge {
	m := &merge{
		run: r, disk: d, forced: forced,
		finished: map[string]*Cell{}, definitions: map[string][]string{}, reports: map[[2]string]*report{},
	}
	m.out = &Folder{
		Name: r.Name, Title: r.Title, Experiment: r.Experiment, Command: r.Command, Publish: r.Publish,
		Narrowed: r.Narrowed, Remarks: r.Remarks, Order: r.Order, Labels: r.Labels, place: map[string]int{},
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		m.out.place[c.Name] = i
		m.cells = append(m.cells, c)
	}
	slices.SortStableFunc(m.cells, func(a, b *Cell) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range m.cells {
		switch c.State {
		case Done:
			m.finished[c.Name] = c
		case Failed:
			m.out.Failed = append(m.out.Failed, c.Name)
		case Blocked:
			m.out.Blocked = append(m.out.Blocked, c.Name)
		}
	}
	m.outputs = outputsOf(m.cells)
	for _, lines := range d.lines {
		for _, l := range lines {
			if !slices.Contains(m.definitions[l.Cell], l.Definition) {
				m.definitions[l.Cell] = append(m.definitions[l.Cell], l.Definition)
			}
		}
	}
	return m
}

// report returns the report on the entries of a cell in a file; an empty cell stands for the whole file.
func (m *merge) report(file, cell string) *report {
	k := [2]string{file, cell}
	if m.reports[k] == nil {
		m.reports[k] = &report{file: file, cell: cell}
	}
	return m.reports[k]
}

// partial reports whether a cell has no results: nothing is removed then.
func (m *merge) partial() bool { return len(m.finished) < len(m.cells) }

// standing returns the standing of the published entries of a finished cell.
func (m *merge) standing(cell string) standing {
	definitions := m.definitions[cell]
	switch {
	case m.forced[cell] || !slices.Contains(definitions, m.finished[cell].Definition.Short()):
		return outdated
	case len(definitions) > 1:
		return contested
	}
	return current
}

// keeps reports whether the published entries of a cell that isn't compared stay: the cell may come back once
// nothing fails any more. Entries of a cell without a line have no known definition, and don't stay.
func (m *merge) keeps(cell string) bool {
	return m.partial() && m.finished[cell] == nil && m.definitions[cell] != nil
}
