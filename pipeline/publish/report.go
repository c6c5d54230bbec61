package publish

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A report collects, row by row, how what one cell has in one file compares with what is published there. A nil
// report collects nothing.
type report struct {
	file, cell string
	pair       func(published, now float64) // called for each pair of numbers; nil for nothing

	reproduced Counts
	largest    float64
	rows       []Row
}

// add notes what became of one row, or of r.Rows of them. Of those that differ in the same column, the one that is
// farthest off is shown.
func (p *report) add(o Outcome, r Row) {
	if p == nil {
		return
	}
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

// differs notes a difference that isn't a matter of size.
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
	if p == nil {
		return ok
	}
	if p.pair != nil {
		p.pair(published, now)
	}
	if ok {
		p.largest = max(p.largest, d)
		return true
	}
	old, new := format(published, digits), format(now, digits)
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
	// The files in the order in which they explain each other.
	place := func(file string) int {
		return slices.IndexFunc([]string{"cells/", "items/", "tables/", "figures/", ""}, func(p string) bool {
			return strings.HasPrefix(file, p)
		})
	}
	slices.SortFunc(v.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(place(a.File), place(b.File)), cmp.Compare(a.File, b.File),
			cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Outcome, b.Outcome))
	})
	return v
}

func (c *Counts) add(o Counts) {
	c.Scores += o.Scores
	c.Items += o.Items
	c.Rows += o.Rows
	c.Figures += o.Figures
	c.Texts += o.Texts
	c.Cells += o.Cells
}
