package fuse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// groupCases groups the cells into cases: the combinations of all axes but rank.
func groupCases(ctx context.Context, rank string, cells []stages.Data) (*contest, error) {
	c := &contest{}
	matches := map[string]*scoreCase{}
	var order []*scoreCase
	for i := range cells {
		method, rest, err := split(rank, cells[i].Coord)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(c.methods, method) {
			c.methods = append(c.methods, method)
		}
		m := &scoreCase{coord: rest}
		key := m.name()
		if matches[key] == nil {
			matches[key] = m
			order = append(order, m)
		}
		c.scores += cells[i].Items.Len()
	}
	slices.Sort(c.methods)
	for i := range cells {
		method, rest, _ := split(rank, cells[i].Coord)
		m := matches[(&scoreCase{coord: rest}).name()]
		if m.cells == nil {
			m.cells = make([]*stages.Data, len(c.methods))
			m.measure = stages.MeasureOf(cells[i].Facts)
		}
		if d := stages.MeasureOf(cells[i].Facts).Direction; d == stages.None || d != m.measure.Direction {
			return nil, fmt.Errorf("case %s: %s can't be compared: its scores have the direction %q, "+
				"others %q",
				m.name(), method, d, m.measure.Direction)
		}
		p, _ := slices.BinarySearch(c.methods, method)
		if m.cells[p] != nil {
			return nil, fmt.Errorf("case %s has two cells of %s", m.name(), method)
		}
		m.cells[p] = &cells[i]
	}
	slices.SortStableFunc(order, func(a, b *scoreCase) int {
		return slices.CompareFunc(a.coord, b.coord,
			func(x, y stages.Coord) int { return strings.Compare(x.ID, y.ID) })
	})
	for _, m := range order {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		var missing []string
		for p, cell := range m.cells {
			if cell == nil {
				missing = append(missing, c.methods[p])
			}
		}
		if len(missing) == 0 {
			if err := m.pair(ctx, c.methods); err != nil {
				return nil, fmt.Errorf("case %s: %w", m.name(), err)
			}
		}
		switch {
		case len(missing) > 0:
			m.reason = "without " + strings.Join(missing, ", ")
		case m.n == 0:
			m.reason = "no image has a score of every method"
		default:
			c.complete = append(c.complete, m)
			continue
		}
		c.incomplete = append(c.incomplete, m)
	}
	if len(c.complete) == 0 {
		if rest, silent := c.withoutUnscored(rank, cells); len(silent) > 0 && len(rest) > 0 {
			d, err := groupCases(ctx, rank, rest)
			if err == nil {
				d.unscored = append(silent, d.unscored...)
			}
			return d, err
		}
		var why []string
		for _, m := range c.incomplete {
			why = append(why, m.name()+" "+m.reason)
		}
		return nil, fmt.Errorf("there is no case with every method on the axis %q: %s", rank,
			strings.Join(why, "; "))
	}
	for _, co := range c.complete[0].coord {
		c.axes = append(c.axes, co.Axis)
	}
	return c, nil
}

// withoutUnscored finds the methods without a single defined score in any complete case, and returns the
// cells of the others. The unscored methods would leave nothing to compare.
func (c *contest) withoutUnscored(rank string, cells []stages.Data) (rest []stages.Data, silent []unscored) {
	for p, method := range c.methods {
		s, heard := unscored{method: method}, false
		for _, m := range c.incomplete {
			if m.undefined != nil && m.cells[p] != nil {
				s.scores += m.undefined[p]
				heard = heard || m.undefined[p] < m.cells[p].Items.Len()
			}
		}
		if s.scores > 0 && !heard {
			silent = append(silent, s)
		}
	}
	for _, cell := range cells {
		method, _, _ := split(rank, cell.Coord)
		if !slices.ContainsFunc(silent, func(s unscored) bool { return s.method == method }) {
			rest = append(rest, cell)
		}
	}
	return rest, silent
}

// split separates the competing axis from a cell's coordinates.
func split(rank string, coord []stages.Coord) (method string, rest []stages.Coord, err error) {
	var axes []string
	for _, c := range coord {
		if c.Axis == rank {
			method = c.ID
			continue
		}
		rest = append(rest, c)
	}
	if method == "" {
		for _, c := range coord {
			axes = append(axes, c.Axis)
		}
		return "", nil, fmt.Errorf("the axis %q isn't collapsed, only %q: list it in over", rank, axes)
	}
	return method, rest, nil
}
