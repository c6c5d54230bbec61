// Package report holds the stages that people read: tables, leaderboards, sheets of maps and plots of curves.
// They see the cells of whole axes at once and show them in the order in which the experiment writes their
// ids.
package report

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/scores"
)

// A cell is one upstream cell's scores.
type cell struct {
	coord   []stages.Coord
	measure stages.Measure
	scores  *scores.List
}

func load(ctx context.Context, data []stages.Data) ([]cell, error) {
	cells := make([]cell, len(data))
	var last *scores.List
	for i, d := range data {
		l, err := scores.Read(ctx, d, last)
		if err != nil {
			return nil, err
		}
		cells[i] = cell{coord: d.Coord, measure: stages.MeasureOf(d.Facts), scores: l}
		last = l
	}
	return cells, nil
}

// defined returns the defined scores, in the order of the items, and how many aren't.
func (c *cell) defined() (v []float64, undefined int) {
	for _, x := range c.scores.Values {
		if math.IsNaN(x) {
			undefined++
		}
	}
	if undefined == 0 {
		return c.scores.Values, 0
	}
	v = make([]float64, 0, len(c.scores.Values)-undefined)
	for _, x := range c.scores.Values {
		if !math.IsNaN(x) {
			v = append(v, x)
		}
	}
	return v, undefined
}

// axesOf returns the collapsed axes, sorted.
func axesOf(data []stages.Data) []string {
	var axes []string
	for _, d := range data {
		for _, c := range d.Coord {
			if !slices.Contains(axes, c.Axis) {
				axes = append(axes, c.Axis)
			}
		}
	}
	slices.Sort(axes)
	return axes
}

// oneAxis checks the parameter that names an axis. An empty one means the only axis there is.
func oneAxis(param, axis string, axes []string) (string, error) {
	switch {
	case slices.Contains(axes, axis):
		return axis, nil
	case axis == "" && len(axes) == 1:
		return axes[0], nil
	case len(axes) == 0:
		return "", stages.BadField(param, "no axis is collapsed here: name some in over")
	case axis == "":
		return "", stages.BadField(param, "%s must say which of the axes %s is meant", param,
			strings.Join(axes, ", "))
	}
	return "", stages.BadField(param, "the axis %q isn't collapsed here, only %s: name it in over", axis,
		strings.Join(axes, ", "))
}

// without returns axes less those in drop.
func without(axes []string, drop ...string) []string {
	var out []string
	for _, a := range axes {
		if !slices.Contains(drop, a) {
			out = append(out, a)
		}
	}
	return out
}

// idOn returns the place on an axis, "" for none.
func idOn(coord []stages.Coord, axis string) string {
	for _, c := range coord {
		if c.Axis == axis {
			return c.ID
		}
	}
	return ""
}

// pick returns the places on several axes.
func pick(coord []stages.Coord, axes []string) []string {
	ids := make([]string, len(axes))
	for i, a := range axes {
		ids[i] = idOn(coord, a)
	}
	return ids
}

// places returns the distinct places on some axes, in the order in which the experiment writes the ids.
func places(order stages.Order, data []stages.Data, axes []string) [][]string {
	var out [][]string
	for _, d := range data {
		ids := pick(d.Coord, axes)
		if !slices.ContainsFunc(out, func(o []string) bool { return slices.Equal(o, ids) }) {
			out = append(out, ids)
		}
	}
	slices.SortFunc(out, func(a, b []string) int {
		for i, axis := range axes {
			if c := order.Compare(axis, a[i], b[i]); c != 0 {
				return c
			}
		}
		return 0
	})
	return out
}

// agree reports whether two places are equal on the axes they share.
func agree(a, b []stages.Coord) bool {
	for _, c := range a {
		if id := idOn(b, c.Axis); id != "" && id != c.ID {
			return false
		}
	}
	return true
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
