package report

import (
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
)

// facets are the panels of a figure: one for each existing combination of ids on their axes.
type facets struct {
	axes   []string
	ids    [][]string // of every panel
	names  []string   // of every panel, "" for the only one
	titles []string   // of every panel; "" if the names of its row and column suffice
	grid   chart.Grid
	byRow  bool // each row of the grid has its own y-axis
}

// An arrangement is the order of panels in the parameters: one after another, by the axes in list, or in a
// grid whose rows and columns have names.
type arrangement struct {
	list, rows, columns []string
	perRow              int
	gap, scale          string
}

// facets arranges panels of data: one for each combination of ids on its axes, except the axes that are
// used within panels. Axes that the arrangement doesn't name follow those of list, or of rows. An axis with
// one id is in no title.
func (a arrangement) facets(e *stages.Env, data []stages.Data, used ...string) (facets, error) {
	axes, named := axesOf(data), slices.Concat(a.list, a.rows, a.columns)
	for _, axis := range named {
		if _, err := oneAxis("facet", axis, axes); err != nil {
			return facets{}, err
		}
	}
	all := slices.Concat(used, named)
	for i, axis := range all {
		if axis != "" && slices.Contains(all[:i], axis) {
			return facets{}, stages.BadField("facet", "the axis %q is named twice", axis)
		}
	}
	grid := len(a.rows)+len(a.columns) > 0
	switch {
	case grid && len(a.list) > 0:
		return facets{}, stages.BadField("facet", "facet lists panels, facet_rows and facet_columns arrange "+
			"them: give one of these")
	case a.scale == "row" && !grid:
		return facets{}, stages.BadField("scale", "scale: row needs a grid: name facet_rows")
	}
	rest := without(axes, all...)
	title := func(axes, ids []string) string {
		var told, named []string
		for i, axis := range axes {
			if len(places(e.Order, data, []string{axis})) > 1 {
				told, named = append(told, axis), append(named, ids[i])
			}
		}
		return labelsOf(e, told, named)
	}
	if !grid {
		f := facets{axes: slices.Concat(a.list, rest), grid: chart.Grid{PerRow: a.perRow}}
		f.ids = places(e.Order, data, f.axes)
		for _, ids := range f.ids {
			f.names = append(f.names, title(f.axes, ids))
		}
		f.titles = f.names
		return f, nil
	}
	rows, columns := slices.Concat(a.rows, rest), a.columns
	f := facets{axes: slices.Concat(rows, columns), grid: chart.Grid{Gap: a.gap}, byRow: a.scale == "row"}
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
	return f, nil
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

// size returns a size in points, or the usual one if it is 0.
func size(points, usual int) float64 {
	if points == 0 {
		points = usual
	}
	return float64(points)
}
