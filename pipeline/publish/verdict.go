package publish

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// A Verdict says how a run compares with what was published before it.
type Verdict struct {
	Reproduced Counts      // claims that the run confirms
	Deviations []Deviation // of the claims, by column
	Differs    []Row       // claims outside their tolerance
	New        []Row       // nothing was published for them
	Rewritten  []Row       // published under another definition, or accepted
	Removed    []Row       // published for cells that don't exist any more
	Kept       []Row       // left alone because something failed
	Changed    []string    // files that were written or removed; for [Verify], that would be
	Warnings   []string    // sentences for the user

	verified bool // it's of [Verify], which leaves the folder alone
}

// Counts counts rows by kind.
type Counts struct {
	Scores  int // means of scores, one a cell and port
	Items   int // scores of items
	Rows    int // rows of tables
	Figures int
	Texts   int
	Cells   int // cells without scores
}

// A Deviation is the largest difference found in a column, within its tolerance
// or not.
type Deviation struct {
	Column    string // "auc mean", "auc" for items, "leaderboard.score" for tables
	Rows      int
	Largest   float64
	Tolerance float64
}

// A Row tells what became of the rows that one cell has in one file.
type Row struct {
	File string
	Cell string // empty for a whole file
	Rows int

	// The rest is set for claims that differ, and then says what differs most.
	Item      string // the item, or the keys of a table's row
	Column    string
	Old, New  string
	Deviation float64 // infinite where it isn't a matter of size
	Tolerance float64
}

// OK reports that nothing differs: every claim was reproduced.
func (v Verdict) OK() bool { return len(v.Differs) == 0 }

// Current reports that the folder says exactly what the run says: every claim
// was reproduced, and nothing else is or should be there.
func (v Verdict) Current() bool {
	return v.OK() && len(v.New) == 0 && len(v.Rewritten) == 0 && len(v.Removed) == 0 && len(v.Kept) == 0
}

// listed is how many cells or differences are spelled out.
const listed = 20

// String tells the verdict in a few lines, the last of them without a newline.
func (v Verdict) String() string {
	var lines []string
	if c := v.Reproduced.String(); c != "" {
		largest := 0.0
		for _, d := range v.Deviations {
			if d.Largest <= d.Tolerance*(1+1e-9) {
				largest = max(largest, d.Largest)
			}
		}
		lines = append(lines, fmt.Sprintf("reproduced %s (largest deviation %s)", c, brief(largest, 1)))
	}
	would := ""
	if v.verified {
		would = "would be "
	}
	for _, part := range []struct {
		name string
		rows []Row
	}{
		{"new", v.New}, {would + "rewritten", v.Rewritten}, {would + "removed", v.Removed}, {"left as they were, something failed", v.Kept},
	} {
		if len(part.rows) > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s", part.name, summary(part.rows)))
		}
	}
	for i, r := range v.Differs {
		if i == listed {
			lines = append(lines, fmt.Sprintf("and %d more differences", len(v.Differs)-i))
			break
		}
		lines = append(lines, "differs: "+r.String())
	}
	if len(lines) == 0 {
		return "nothing to publish"
	}
	return strings.Join(lines, "\n")
}

// String tells a difference: auc[method=rise] mean 0.123 → 0.124 (tolerance 1e-4).
func (r Row) String() string {
	what := r.Cell
	if r.Cell == "" {
		what = r.File
	}
	if r.Column == "" {
		return what
	}
	if r.Item != "" {
		what += " " + r.Item
	}
	s := fmt.Sprintf("%s %s %s → %s", what, r.Column, orUndefined(r.Old), orUndefined(r.New))
	if !math.IsInf(r.Deviation, 0) {
		s += fmt.Sprintf(" (tolerance %s)", brief(r.Tolerance, 3))
	}
	if r.Rows > 1 {
		s += fmt.Sprintf(", and %d more rows in %s", r.Rows-1, r.File)
	}
	return s
}

func orUndefined(s string) string {
	if s == "" {
		return "undefined"
	}
	return s
}

// String counts in words, "" for nothing: 48 scores, 2 figures.
func (c Counts) String() string {
	var parts []string
	for _, p := range []struct {
		n         int
		one, many string
	}{
		{c.Scores, "score", "scores"}, {c.Items, "item score", "item scores"}, {c.Rows, "table row", "table rows"},
		{c.Figures, "figure", "figures"}, {c.Texts, "text", "texts"}, {c.Cells, "other cell", "other cells"},
	} {
		if p.n > 0 {
			parts = append(parts, count(p.n, p.one, p.many))
		}
	}
	return strings.Join(parts, ", ")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// summary counts rows and names their cells or files.
func summary(rows []Row) string {
	n := 0
	var names []string
	seen := map[string]bool{}
	for _, r := range rows {
		n += r.Rows
		name := r.Cell
		if name == "" {
			name = r.File
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	more := ""
	if len(names) > 3 {
		more = fmt.Sprintf(" and %d more", len(names)-3)
		names = names[:3]
	}
	return count(n, "row", "rows") + " of " + strings.Join(names, ", ") + more
}

// cellsOf returns the names of the cells in rows.
func cellsOf(rows []Row) map[string]bool {
	names := map[string]bool{}
	for _, r := range rows {
		names[r.Cell] = true
	}
	return names
}

type outcome int

const (
	reproduced outcome = iota
	differs
	added
	rewritten
	removed
	kept
)

// tally collects outcomes row by row.
type tally struct {
	counts     Counts
	rows       [kept + 1]map[[3]string]*Row // by file, cell and column
	deviations map[string]*Deviation
}

func newTally() *tally {
	t := &tally{deviations: map[string]*Deviation{}}
	for i := range t.rows {
		t.rows[i] = map[[3]string]*Row{}
	}
	return t
}

// add counts one row, or r.Rows of them. Of those that differ in the same
// column, the one farthest off is shown.
func (t *tally) add(o outcome, r Row) {
	r.Rows = max(r.Rows, 1)
	key := [3]string{r.File, r.Cell, r.Column}
	old, ok := t.rows[o][key]
	if !ok {
		t.rows[o][key] = &r
		return
	}
	r.Rows += old.Rows
	if r.Deviation > old.Deviation {
		*old = r
	} else {
		old.Rows = r.Rows
	}
}

// deviation notes how far a claim is off.
func (t *tally) deviation(column string, d, tolerance float64) {
	v, ok := t.deviations[column]
	if !ok {
		v = &Deviation{Column: column}
		t.deviations[column] = v
	}
	v.Rows++
	v.Largest = max(v.Largest, d)
	v.Tolerance = max(v.Tolerance, tolerance)
}

// join adds another tally, of other files.
func (t *tally) join(o *tally) {
	c := o.counts
	t.counts.Scores += c.Scores
	t.counts.Items += c.Items
	t.counts.Rows += c.Rows
	t.counts.Figures += c.Figures
	t.counts.Texts += c.Texts
	t.counts.Cells += c.Cells
	for i := range o.rows {
		maps.Copy(t.rows[i], o.rows[i])
	}
	for column, d := range o.deviations {
		t.deviation(column, d.Largest, d.Tolerance)
		t.deviations[column].Rows += d.Rows - 1
	}
}

func (t *tally) verdict() Verdict {
	v := Verdict{Reproduced: t.counts}
	for _, d := range t.deviations {
		v.Deviations = append(v.Deviations, *d)
	}
	slices.SortFunc(v.Deviations, func(a, b Deviation) int { return cmp.Compare(a.Column, b.Column) })
	for o, rows := range map[outcome]*[]Row{differs: &v.Differs, added: &v.New, rewritten: &v.Rewritten, removed: &v.Removed, kept: &v.Kept} {
		for _, r := range t.rows[o] {
			*rows = append(*rows, *r)
		}
		slices.SortFunc(*rows, func(a, b Row) int {
			return cmp.Or(cmp.Compare(place(a.File), place(b.File)), cmp.Compare(a.File, b.File), cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Column, b.Column))
		})
	}
	return v
}

// place puts the files in the order in which they explain each other.
func place(file string) int {
	return slices.IndexFunc([]string{"cells/", "items/", "tables/", "figures/", ""}, func(p string) bool { return strings.HasPrefix(file, p) })
}
