package fuse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// gather sorts the cells into cases by all axes but rank.
func gather(ctx context.Context, rank string, cells []stages.Data) (*contest, error) {
	c := &contest{}
	matches := map[string]*match{}
	var order []*match
	for i := range cells {
		method, rest, err := split(rank, cells[i].Coord)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(c.methods, method) {
			c.methods = append(c.methods, method)
		}
		m := &match{coord: rest}
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
		m := matches[(&match{coord: rest}).name()]
		if m.cells == nil {
			m.cells = make([]*stages.Data, len(c.methods))
			m.measure = stages.MeasureOf(cells[i].Facts)
		}
		if d := stages.MeasureOf(cells[i].Facts).Direction; d == stages.None || d != m.measure.Direction {
			return nil, fmt.Errorf("case %s: %s can't be compared: its scores' direction is %q, others' %q",
				m.name(), method, d, m.measure.Direction)
		}
		p, _ := slices.BinarySearch(c.methods, method)
		if m.cells[p] != nil {
			return nil, fmt.Errorf("case %s has two cells of %s", m.name(), method)
		}
		m.cells[p] = &cells[i]
	}
	slices.SortStableFunc(order, func(a, b *match) int {
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
			m.why = "without " + strings.Join(missing, ", ")
		case m.n == 0:
			m.why = "no image has a score of every method"
		default:
			c.kept = append(c.kept, m)
			continue
		}
		c.left = append(c.left, m)
	}
	if len(c.kept) == 0 {
		if rest, silent := c.withoutSilent(rank, cells); len(silent) > 0 && len(rest) > 0 {
			d, err := gather(ctx, rank, rest)
			if err == nil {
				d.silent = append(silent, d.silent...)
			}
			return d, err
		}
		var why []string
		for _, m := range c.left {
			why = append(why, m.name()+" "+m.why)
		}
		return nil, fmt.Errorf("there is no case with every method on the axis %q: %s", rank,
			strings.Join(why, "; "))
	}
	for _, co := range c.kept[0].coord {
		c.axes = append(c.axes, co.Axis)
	}
	return c, nil
}

// withoutSilent returns the methods none of whose scores is defined in any case that every method has, and
// the cells of the others. They would leave nothing to compare.
func (c *contest) withoutSilent(rank string, cells []stages.Data) (rest []stages.Data, silent []silence) {
	for p, method := range c.methods {
		s, heard := silence{method: method}, false
		for _, m := range c.left {
			if m.nans != nil && m.cells[p] != nil {
				s.scores += m.nans[p]
				heard = heard || m.nans[p] < m.cells[p].Items.Len()
			}
		}
		if s.scores > 0 && !heard {
			silent = append(silent, s)
		}
	}
	for _, cell := range cells {
		method, _, _ := split(rank, cell.Coord)
		if !slices.ContainsFunc(silent, func(s silence) bool { return s.method == method }) {
			rest = append(rest, cell)
		}
	}
	return rest, silent
}

// split takes the competing axis out of a cell's place.
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
		return "", nil, fmt.Errorf("the axis %q isn't collapsed here, only %q: name it in over", rank, axes)
	}
	return method, rest, nil
}
