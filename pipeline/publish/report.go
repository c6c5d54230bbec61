package publish

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

type outcome int

const (
	differs outcome = iota
	added
	rewritten
	removed
	kept
)

// A report collects, row by row, how what one cell has in one file compares with what is published there. A
// nil report collects nothing.
type report struct {
	file, cell string
	pair       func(published, now float64) // called for each pair of numbers; nil for nothing

	reproduced Counts
	rows       []reportRow
	deviations []Deviation
}

type reportRow struct {
	outcome outcome
	Row
}

// add notes what became of one row, or of r.Rows of them.
func (p *report) add(o outcome, r Row) {
	if p == nil {
		return
	}
	r.File, r.Cell, r.Rows = p.file, p.cell, max(r.Rows, 1)
	r.Item = strings.ReplaceAll(r.Item, keySeparator, ",")
	if n := len(p.rows); n > 0 && p.rows[n-1].outcome == o && p.rows[n-1].Column == r.Column {
		p.rows[n-1].Row = farther(p.rows[n-1].Row, r)
		return
	}
	p.rows = append(p.rows, reportRow{o, r})
}

// farther returns the one of two rows that is farther off, counting both.
func farther(a, b Row) Row {
	n := a.Rows + b.Rows
	if b.Deviation > a.Deviation {
		a = b
	}
	a.Rows = n
	return a
}

// differs notes a difference that isn't a matter of size.
func (p *report) differs(column, old, new string) {
	p.add(differs, Row{Column: column, Old: old, New: new, Deviation: math.Inf(1)})
}

// gone notes a claim about a row that the run doesn't have.
func (p *report) gone(key string) {
	p.add(differs, Row{Item: key, Column: "row", Old: "there", New: "not there", Deviation: math.Inf(1)})
}

// count compares two whole numbers, which have to be equal.
func (p *report) count(column string, published, now int) bool {
	if published != now {
		p.differs(column, strconv.Itoa(published), strconv.Itoa(now))
	}
	return published == now
}

// A number is a column of numbers in a comparison.
type number struct {
	item, column string // of the row, and in it
	label        string // of its deviations
	tolerance    float64
	digits       int
}

// number compares a published number with that of the run.
func (p *report) number(n number, published, now float64) bool {
	d, ok := within(published, now, n.tolerance, n.digits)
	if p == nil {
		return ok
	}
	if p.pair != nil {
		p.pair(published, now)
	}
	p.deviate(Deviation{n.label, 1, d, n.tolerance})
	if !ok {
		p.add(differs, Row{
			Item: n.item, Column: n.column, Old: format(published, n.digits), New: format(now, n.digits),
			Deviation: d, Tolerance: n.tolerance,
		})
	}
	return ok
}

// deviate notes how far claims are off.
func (p *report) deviate(d Deviation) {
	i := slices.IndexFunc(p.deviations, func(o Deviation) bool { return o.Column == d.Column })
	if i < 0 {
		p.deviations = append(p.deviations, d)
		return
	}
	o := &p.deviations[i]
	o.Rows, o.Largest, o.Tolerance = o.Rows+d.Rows, max(o.Largest, d.Largest), max(o.Tolerance, d.Tolerance)
}

// verdictOf adds up reports.
func verdictOf(reports []*report) Verdict {
	var v Verdict
	var all report
	type key struct {
		outcome            outcome
		file, cell, column string
	}
	index := map[key]int{}
	lists := map[outcome]*[]Row{differs: &v.Differs, added: &v.New, rewritten: &v.Rewritten, removed: &v.Removed, kept: &v.Kept}
	for _, p := range reports {
		v.Reproduced.add(p.reproduced)
		for _, d := range p.deviations {
			all.deviate(d)
		}
		for _, r := range p.rows {
			k, list := key{r.outcome, r.File, r.Cell, r.Column}, lists[r.outcome]
			if i, ok := index[k]; ok {
				(*list)[i] = farther((*list)[i], r.Row)
			} else {
				index[k] = len(*list)
				*list = append(*list, r.Row)
			}
		}
	}
	v.Deviations = all.deviations
	slices.SortFunc(v.Deviations, func(a, b Deviation) int { return cmp.Compare(a.Column, b.Column) })
	for _, list := range lists {
		slices.SortFunc(*list, func(a, b Row) int {
			return cmp.Or(cmp.Compare(place(a.File), place(b.File)), cmp.Compare(a.File, b.File),
				cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Column, b.Column))
		})
	}
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

// place puts the files in the order in which they explain each other.
func place(file string) int {
	return slices.IndexFunc([]string{"cells/", "items/", "tables/", "figures/", ""}, func(p string) bool {
		return strings.HasPrefix(file, p)
	})
}
