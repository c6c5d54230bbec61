package publish

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/pipeline/typeset"
)

// A Verdict is how a run compares with what was published before it.
type Verdict struct {
	Answer     string   // the first sentence of this run's answer, "" if it has none
	Reproduced Counts   // published entries that the run reproduces
	Largest    float64  // the largest deviation of a number in these
	Rows       []Row    // all other entries
	Changed    []string // files that were written or removed; for [Verify], those that would be
	Warnings   []string // sentences for the user

	verified bool // it is of [Verify], which changes no file
}

// Counts counts entries by kind.
type Counts struct {
	Scores  int // means of scores, one a cell and port
	Items   int // scores of items
	Rows    int // rows of tables
	Figures int
	Texts   int
	Cells   int // cells without scores
}

func (c *Counts) add(o Counts) {
	c.Scores += o.Scores
	c.Items += o.Items
	c.Rows += o.Rows
	c.Figures += o.Figures
	c.Texts += o.Texts
	c.Cells += o.Cells
}

// An Outcome is what became of entries that the run doesn't reproduce.
type Outcome int

const (
	Differs   Outcome = iota // current, and outside the tolerance
	New                      // not published before
	Rewritten                // published under another definition, or accepted
	Removed                  // published for a cell that the experiment no longer has
	Kept                     // not compared, because something failed
)

// A Row is what became of the entries that one cell has in one file.
type Row struct {
	Outcome Outcome
	File    string
	Cell    string // empty for a whole file
	Rows    int

	// The rest is set for entries that differ, and is about the one that differs most.
	Item      string // the item, or the keys of a table's row
	Column    string
	Old, New  string
	Deviation float64 // infinite for a difference that has no size
	Tolerance float64
}

// Of returns the rows with an outcome.
func (v Verdict) Of(o Outcome) []Row {
	return slices.DeleteFunc(slices.Clone(v.Rows), func(r Row) bool { return r.Outcome != o })
}

// OK reports that no entry differs.
func (v Verdict) OK() bool { return len(v.Of(Differs)) == 0 }

// Current reports that the folder has exactly the entries of the run, and that all of them were reproduced.
func (v Verdict) Current() bool { return len(v.Rows) == 0 }

// listed is how many differences are spelled out.
const listed = 20

// String returns the verdict in a few lines, without the last newline.
func (v Verdict) String() string {
	var lines []string
	if c := v.Reproduced.String(); c != "" {
		lines = append(lines, fmt.Sprintf("reproduced %s (largest deviation %s)", c,
			typeset.Brief(v.Largest, 1)))
	}
	would := ""
	if v.verified {
		would = "would be "
	}
	names := []string{"new", would + "rewritten", would + "removed", "left as they were, something failed"}
	for i, name := range names {
		if rows := v.Of(New + Outcome(i)); len(rows) > 0 {
			lines = append(lines, name+": "+summary(rows))
		}
	}
	differing := v.Of(Differs)
	for _, r := range differing[:min(listed, len(differing))] {
		lines = append(lines, "differs: "+r.String())
	}
	if more := len(differing) - listed; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more differences", more))
	}
	return cmp.Or(strings.Join(lines, "\n"), "nothing to publish")
}

// String describes a difference: auc[method=rise] mean 0.123 → 0.124 (tolerance 1e-4).
func (r Row) String() string {
	s := cmp.Or(r.Cell, r.File)
	if r.Item != "" {
		s += " " + r.Item
	}
	s += fmt.Sprintf(" %s %s → %s", r.Column, cmp.Or(r.Old, "undefined"), cmp.Or(r.New, "undefined"))
	if !math.IsInf(r.Deviation, 0) {
		s += fmt.Sprintf(" (tolerance %s)", typeset.Brief(r.Tolerance, 3))
	}
	if r.Rows > 1 {
		s += fmt.Sprintf(", and %d more rows in %s", r.Rows-1, r.File)
	}
	return s
}

// String lists the counts, "" if all are 0: 48 scores, 2 figures.
func (c Counts) String() string {
	var parts []string
	add := func(n int, kind string) {
		if n > 0 {
			parts = append(parts, count(n, kind))
		}
	}
	add(c.Scores, "score")
	add(c.Items, "item score")
	add(c.Rows, "table row")
	add(c.Figures, "figure")
	add(c.Texts, "text")
	add(c.Cells, "other cell")
	return strings.Join(parts, ", ")
}

func count(n int, kind string) string {
	if n == 1 {
		return "1 " + kind
	}
	return fmt.Sprintf("%d %ss", n, kind)
}

// counted lists names with their numbers of cells, sorted.
func counted(cells map[string]int) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(cells)) {
		list = append(list, fmt.Sprintf("%s (%s)", name, count(cells[name], "cell")))
	}
	return list
}

// summary counts rows and names their cells or files.
func summary(rows []Row) string {
	n := 0
	var names []string
	for _, r := range rows {
		n += r.Rows
		names = append(names, cmp.Or(r.Cell, r.File))
	}
	return count(n, "row") + " of " + some(distinct(names, itself), 3)
}

// distinct returns the first of each element with the same key.
func distinct[T any](list []T, key func(T) string) []T {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(x T) bool {
		k := key(x)
		was := seen[k]
		seen[k] = true
		return was
	})
}

func itself(s string) string { return s }

// some joins the first n names of a list.
func some(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// A report collects, entry by entry, how those of one cell in one file compare with the published ones.
type report struct {
	file, cell string
	reproduced Counts
	largest    float64
	rows       []Row
}

// add notes what became of one entry, or of r.Rows of them. Of those that differ in the same column, the
// one with the largest deviation is shown.
func (p *report) add(o Outcome, r Row) {
	r.Outcome, r.File, r.Cell, r.Rows = o, p.file, p.cell, max(r.Rows, 1)
	i := slices.IndexFunc(p.rows, func(q Row) bool { return q.Outcome == o && q.Column == r.Column })
	if i < 0 {
		p.rows = append(p.rows, r)
		return
	}
	n := p.rows[i].Rows + r.Rows
	if r.Deviation > p.rows[i].Deviation {
		p.rows[i] = r
	}
	p.rows[i].Rows = n
}

// differs notes a difference that has no size.
func (p *report) differs(item, column, old, new string) {
	p.add(Differs, Row{Item: item, Column: column, Old: old, New: new, Deviation: math.Inf(1)})
}

// count compares two whole numbers, which have to be equal.
func (p *report) count(column string, published, now int) bool {
	if published != now {
		p.differs("", column, strconv.Itoa(published), strconv.Itoa(now))
	}
	return published == now
}

// number compares a published number with that of the run.
func (p *report) number(item, column string, published, now, tolerance float64, digits int) bool {
	d, ok := within(published, now, tolerance, digits)
	if ok {
		p.largest = max(p.largest, d)
		return true
	}
	old, new := typeset.Format(published, digits), typeset.Format(now, typeset.Digits)
	p.add(Differs, Row{Item: item, Column: column, Old: old, New: new, Deviation: d, Tolerance: tolerance})
	return false
}

// verdict adds up the reports.
func (m *merge) verdict() (v Verdict) {
	for _, p := range m.reports {
		v.Largest = max(v.Largest, p.largest)
		v.Rows = append(v.Rows, p.rows...)
		v.Reproduced.add(p.reproduced)
	}
	place := func(file string) int { // a file comes after those that it is made from
		return slices.Index([]string{"cells", "items", "tables", "figures", "."}, path.Dir(file))
	}
	slices.SortFunc(v.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(place(a.File), place(b.File)), cmp.Compare(a.File, b.File),
			cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Outcome, b.Outcome))
	})
	return v
}
