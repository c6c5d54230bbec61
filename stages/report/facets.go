package report

import (
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
)

// facets are the panels of a figure: one for each combination of ids that there is on their axes.
type facets struct {
	axes   []string
	ids    [][]string // of every panel
	names  []string   // of every panel, "" for the only one
	titles []string   // of every panel; "" where the names of its row and column tell all
	grid   chart.Grid
}

// newFacets arranges panels: one after another, by the axes in list, or with rows and columns in a grid whose
// rows and columns have names. rest are the axes that nothing else names: they follow those of list, or of
// rows. An axis with one id is in no title.
func newFacets(e *stages.Env, data []stages.Data, list, rows, columns, rest []string, perRow int,
	gap string) facets {
	title := func(axes, ids []string) string {
		var told, named []string
		for i, axis := range axes {
			if len(places(e.Order, data, []string{axis})) > 1 {
				told, named = append(told, axis), append(named, ids[i])
			}
		}
		return labelsOf(e, told, named)
	}
	if len(rows)+len(columns) == 0 {
		f := facets{axes: slices.Concat(list, rest), grid: chart.Grid{PerRow: perRow}}
		f.ids = places(e.Order, data, f.axes)
		for _, ids := range f.ids {
			f.names = append(f.names, title(f.axes, ids))
		}
		f.titles = f.names
		return f
	}
	rows = slices.Concat(rows, rest)
	f := facets{axes: slices.Concat(rows, columns), grid: chart.Grid{Gap: gap}}
	down, across := places(e.Order, data, rows), places(e.Order, data, columns)
	for _, ids := range down {
		f.grid.Rows = append(f.grid.Rows, title(rows, ids))
	}
	for _, ids := range across {
		f.grid.Columns = append(f.grid.Columns, title(columns, ids))
	}
	at := func(list [][]string, ids []string) int {
		return slices.IndexFunc(list, func(o []string) bool { return slices.Equal(o, ids) })
	}
	f.ids = places(e.Order, data, f.axes)
	for _, ids := range f.ids {
		f.names = append(f.names, title(f.axes, ids))
		f.grid.At = append(f.grid.At, [2]int{at(down, ids[:len(rows)]), at(across, ids[len(rows):])})
	}
	f.titles = make([]string, len(f.ids))
	return f
}

// lacks names the ids of an axis for which panel n has no cell, with the panel.
func (f facets) lacks(e *stages.Env, cells []cell, n int, axis string, ids []string) []string {
	var missing []string
	for _, id := range ids {
		if !slices.ContainsFunc(cells, func(c cell) bool {
			return slices.Equal(pick(c.Coord, f.axes), f.ids[n]) && idOn(c.Coord, axis) == id
		}) {
			missing = append(missing, e.Label(axis, id))
		}
	}
	if missing == nil {
		return nil
	}
	return []string{strings.Join(missing, ", ") + " in " + f.names[n]}
}

// twice returns an error if an axis is named by two parameters, of which the last is param.
func twice(param string, axes ...string) error {
	for i, a := range axes {
		if slices.Contains(axes[:i], a) && a != "" {
			return stages.BadField(param, "the axis %q is named twice", a)
		}
	}
	return nil
}

// size returns a size in points, or without one the usual.
func size(points, usual int) float64 {
	if points == 0 {
		points = usual
	}
	return float64(points)
}

// byRow reads the parameter scale.
func byRow(scale string, rows, columns []string) (bool, error) {
	if scale == "row" && len(rows)+len(columns) == 0 {
		return false, stages.BadField("scale", "scale: row is that of each row of a grid: name facet_rows")
	}
	return scale == "row", nil
}
