package publish

import (
	"cmp"
	"maps"
	"slices"
)

// A claim is a row, picture or text on disk, or what a run has in its place.
type claim[T any] interface {
	at() at                        // the cell and, in README.md, the port that has it
	key() string                   // what tells it from the others there
	rows() int                     // how many it counts for
	usable() bool                  // whether it claims anything: it's readable, and of the run's definition
	compare(now T, r *report) bool // whether now reproduces it
	published(now T) T             // now, as far as it isn't the run's to say, with the values of the claim
	keep()                         // marks it as of an earlier run
	String() string                // equal for equal claims
}

// A row is what most claims have in common: there is one of them at a place, and all can be read.
type row struct {
	Old bool // of an earlier run
}

func (r *row) key() string  { return "" }
func (r *row) rows() int    { return 1 }
func (r *row) usable() bool { return true }
func (r *row) keep()        { r.Old = true }

// A standing is what the lines on disk make of a cell's rows, figures and texts, which don't carry
// definitions.
type standing int8

const (
	unclaimed standing = iota // no line has the run's definition: they are rewritten
	contested                 // lines of two branches have different ones: what doesn't hold is rewritten
	claimed
)

// mergeRows pairs the rows that a finished cell has in a file with those that are published there, by their
// keys, and returns the rows to publish: a claim has the published values, whether it holds or not, anything
// else the run's.
func mergeRows[T claim[T]](s standing, r *report, published, now []T) []T {
	byKey := groupBy(published, T.key)
	out := make([]T, 0, len(now))
	current := map[string]bool{}
	for _, n := range now {
		k := n.key()
		current[k] = true
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
		// The run may have several rows with this key.
		byKey[k] = slices.Delete(byKey[k], i, i+1)
	}
	for _, p := range published {
		switch k := p.key(); {
		case current[k]: // rewritten, or a second claim about a row
		case s != claimed || !p.usable():
			r.add(Removed, Row{Rows: p.rows()})
		default:
			current[k] = true
			r.differs(k, "row", "there", "not there")
			out = append(out, p)
		}
	}
	return out
}

// choose returns the index of the claim about a row: of one that holds, else of the first, and -1 for none.
func choose[T claim[T]](s standing, published []T, now T) int {
	if s == unclaimed {
		return -1
	}
	holds := func(p T) bool { return p.usable() && p.compare(now, &report{}) }
	if i := slices.IndexFunc(published, holds); i >= 0 || s == contested {
		return i
	}
	return slices.IndexFunc(published, T.usable)
}

// An at is a cell and, in README.md, one of its ports.
type at struct{ cell, port string }

func (a at) compare(b at) int {
	return cmp.Or(cmp.Compare(a.cell, b.cell), cmp.Compare(a.port, b.port))
}

// mergeFile merges what finished cells have in a file with what is published there, and adds what of the
// other cells stays. All finished cells of stage are compared, those without rows too. The rows are sorted by
// cell.
func mergeFile[T claim[T]](m *merge, file, stage string, published, now []T) (out []T) {
	before, after := groupBy(published, T.at), groupBy(now, T.at)
	cells := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
	slices.SortFunc(cells, at.compare)
	for _, a := range slices.Compact(cells) {
		r := m.report(file, a.cell)
		switch {
		case m.finished[a.cell] != nil && (after[a] != nil || stageOf(a.cell) == stage):
			out = append(out, mergeRows(m.standing(a.cell), r, before[a], after[a])...)
		case m.keeps(a.cell):
			rows := distinct(before[a], T.String)
			for _, p := range rows {
				r.add(Kept, Row{Rows: p.rows()})
				p.keep()
			}
			out = append(out, rows...)
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

// merge is one comparison of a folder with a review.
type merge struct {
	run         *Review
	disk        *disk
	cells       []*Cell              // by name
	finished    map[string]*Cell     // by name
	forced      map[string]bool      // names of cells that have no claims
	outputs     map[string][]*output // by the folder of their files
	definitions map[string][]string  // on disk, by cell
	out         *Folder
	reports     map[[2]string]*report // by file and cell
}

// mergeFolder merges what is on disk with a review, in which the cells in forced have no claims.
func mergeFolder(d *disk, r *Review, forced map[string]bool) (*merge, error) {
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

// report returns the report of what a cell has in a file; no cell stands for the whole file.
func (m *merge) report(file, cell string) *report {
	k := [2]string{file, cell}
	if m.reports[k] == nil {
		m.reports[k] = &report{file: file, cell: cell}
	}
	return m.reports[k]
}

// partial reports whether something failed: nothing is removed then.
func (m *merge) partial() bool { return len(m.finished) < len(m.cells) }

// standing returns that of a finished cell.
func (m *merge) standing(cell string) standing {
	definitions := m.definitions[cell]
	switch {
	case m.forced[cell] || !slices.Contains(definitions, m.finished[cell].Definition.Short()):
		return unclaimed
	case len(definitions) > 1:
		return contested
	}
	return claimed
}

// keeps reports whether what is published of a cell that isn't compared stays: the cell may come back once
// nothing fails any more. Rows whose cell has no line claim nothing.
func (m *merge) keeps(cell string) bool {
	return m.partial() && m.finished[cell] == nil && m.definitions[cell] != nil
}
