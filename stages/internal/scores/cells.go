package scores

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A Cell holds the scores of one upstream cell.
type Cell struct {
	Coord   []stages.Coord
	Items   string // what they are, in the plural, as of [stages.ItemsOf]
	Measure stages.Measure
	Scores  *List
	// Replicates are the scores of each seed, over the items that have a defined one of every seed; nil for
	// scores that don't depend on a seed.
	Replicates [][]float64
	seeds      []*List // of each seed, of all items; nil where Replicates is
	// Exact is set for cheap scores of which some were measured exactly, too; nil for scores as they are.
	Exact *Exact
}

// Load reads the cells of a port, in their order. Cells that differ in their seeds alone are one: see
// [averaged].
func Load(ctx context.Context, data []stages.Data) ([]Cell, error) {
	lists, err := Read(ctx, data)
	if err != nil {
		return nil, err
	}
	cells := make([]Cell, len(data))
	for i, d := range data {
		cells[i] = Cell{Coord: d.Coord, Items: stages.ItemsOf(data), Measure: stages.MeasureOf(d.Facts),
			Scores: lists[i]}
	}
	return averaged(cells, data)
}

// Defined returns the defined scores in the order of the items, and the number of undefined ones.
func (c *Cell) Defined() (v []float64, undefined int) {
	for _, x := range c.Scores.Values {
		if math.IsNaN(x) {
			undefined++
		}
	}
	if undefined == 0 {
		return c.Scores.Values, 0
	}
	v = make([]float64, 0, len(c.Scores.Values)-undefined)
	for _, x := range c.Scores.Values {
		if !math.IsNaN(x) {
			v = append(v, x)
		}
	}
	return v, undefined
}

// Axes returns the collapsed axes, sorted.
func Axes(data []stages.Data) []string {
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

// OneAxis validates a parameter that names an axis. If empty, it defaults to the only axis.
func OneAxis(param, axis string, axes []string) (string, error) {
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

// Without returns axes except those in drop.
func Without(axes []string, drop ...string) []string {
	var out []string
	for _, a := range axes {
		if !slices.Contains(drop, a) {
			out = append(out, a)
		}
	}
	return out
}

// IDOn returns the id on an axis, or "".
func IDOn(coord []stages.Coord, axis string) string {
	for _, c := range coord {
		if c.Axis == axis {
			return c.ID
		}
	}
	return ""
}

// Pick returns the ids on several axes.
func Pick(coord []stages.Coord, axes []string) []string {
	ids := make([]string, len(axes))
	for i, a := range axes {
		ids[i] = IDOn(coord, a)
	}
	return ids
}

// Places returns the distinct ids on some axes, in the experiment's order, or without one sorted as text.
func Places(order stages.Order, data []stages.Data, axes []string) [][]string {
	var out [][]string
	for _, d := range data {
		ids := Pick(d.Coord, axes)
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
