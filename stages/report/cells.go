// Package report has the stages that make figures, tables and texts: table.go with its marks in
// table_marks.go, leaderboard.go with its text in leaderboard_answer.go, sheet.go, curves.go and aggatt.go
// with their drawing in sheet_draw.go, curves_draw.go and aggatt_draw.go; cells.go has what they share. A
// report combines the cells of whole axes and shows them in the order in which the experiment lists their
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

// A cell holds the scores of one upstream cell.
type cell struct {
	coord   []stages.Coord
	measure stages.Measure
	scores  *scores.List
}

func load(ctx context.Context, data []stages.Data) ([]cell, error) {
	lists, err := scores.Read(ctx, data)
	if err != nil {
		return nil, err
	}
	cells := make([]cell, len(data))
	for i, d := range data {
		cells[i] = cell{coord: d.Coord, measure: stages.MeasureOf(d.Facts), scores: lists[i]}
	}
	return cells, nil
}

// defined returns the defined scores in the order of the items, and the number of undefined ones.
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

// oneAxis validates a parameter that names an axis. If empty, it defaults to the only axis.
func oneAxis(param, axis string, axes []string) (string, error) {
	switch {
	case slices.Contains(axes, axis):
		return axis, nil
	case axis == "" && len(axes) == 1:
		return axes[0], nil
	case len(axes) == 0:
		return "", stages.BadField(param, "no axis is collapsed: list axes in over")
	case axis == "":
		return "", stages.BadField(param, "%s is required: name one of the axes %s", param,
			strings.Join(axes, ", "))
	}
	return "", stages.BadField(param, "the axis %q isn't collapsed, only %s: list it in over", axis,
		strings.Join(axes, ", "))
}

// without returns axes except those in drop.
func without(axes []string, drop ...string) []string {
	var out []string
	for _, a := range axes {
		if !slices.Contains(drop, a) {
			out = append(out, a)
		}
	}
	return out
}

// idOn returns the id on an axis, or "".
func idOn(coord []stages.Coord, axis string) string {
	for _, c := range coord {
		if c.Axis == axis {
			return c.ID
		}
	}
	return ""
}

// pick returns the ids on several axes.
func pick(coord []stages.Coord, axes []string) []string {
	ids := make([]string, len(axes))
	for i, a := range axes {
		ids[i] = idOn(coord, a)
	}
	return ids
}

// places returns the distinct ids on some axes, in the experiment's order.
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

// agree reports whether two coordinates are equal on the axes that they share.
func agree(a, b []stages.Coord) bool {
	for _, c := range a {
		if id := idOn(b, c.Axis); id != "" && id != c.ID {
			return false
		}
	}
	return true
}

// count formats a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
