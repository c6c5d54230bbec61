// Package report has the stages that make figures, tables and texts. table.go makes a table with its marks
// (table_marks.go); leaderboard.go a table with an answer in words (leaderboard_answer.go) that begins by
// saying whether there is one (leaderboard_verdict.go); curves.go and
// aggatt.go draw curves (curves_draw.go, aggatt_draw.go). sheet.go shows images and maps: it chooses images
// (sheet_items.go), scales maps to the size of tiles (sheet_tile.go), writes notes below them
// (sheet_notes.go) and outlines (sheet_outline.go), draws the page (sheet_draw.go), and records the tiles
// for the review (page.go); thumbnails.go makes small pictures. text.go shows texts and their tokens in
// colours: it breaks them into lines (text_flow.go), draws them (text_draw.go), and writes them in LaTeX
// (text_latex.go). boxplot.go draws scores, heatmap.go, intervals.go and critical_difference.go draw tables,
// with figure.go in common; facets.go divides figures into panels; curves_seeds.go averages curves over
// seeds; groups.go splits images by columns; cells.go has the functions that all share. A report combines the
// cells of whole axes and shows them in the order in which the experiment lists their ids.
package report

import (
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/scores"
)

type cell = scores.Cell

var (
	load    = scores.Load
	axesOf  = scores.Axes
	oneAxis = scores.OneAxis
	without = scores.Without
	idOn    = scores.IDOn
	pick    = scores.Pick
	places  = scores.Places
)

// pointers returns the addresses of cells.
func pointers(cells []cell) []*cell {
	all := make([]*cell, len(cells))
	for i := range cells {
		all[i] = &cells[i]
	}
	return all
}

// replicated reports whether the scores of a cell are averaged over seeds.
func replicated(cells []cell) bool {
	return slices.ContainsFunc(cells, func(c cell) bool { return c.Replicates != nil })
}

// overSeeds ends the title of a table with standard deviations.
const overSeeds = ", ± standard deviation over seeds"

// sdOf describes the standard deviations over seeds of a column; alone is set if it is the only column. They
// are displayed behind a ±.
func sdOf(c stages.Column, alone bool) stages.Column {
	sd := stages.Column{Name: c.Name + " sd", Unit: c.Unit, Tolerance: 4 * c.Tolerance, Digits: meanDigits}
	if c.Label != "" {
		sd.Label = c.Label + " sd"
	}
	if alone {
		sd.Name, sd.Label = "sd", ""
	}
	return sd
}

// agree reports whether two coordinates are equal on their common axes.
func agree(a, b []stages.Coord) bool {
	for _, c := range a {
		if id := idOn(b, c.Axis); id != "" && id != c.ID {
			return false
		}
	}
	return true
}

// labelsOf returns the name of a place in figures and tables: the labels of its ids, or the ids.
func labelsOf(e *stages.Env, axes, ids []string) string {
	labels := make([]string, len(ids))
	for i, id := range ids {
		labels[i] = e.Label(axes[i], id)
	}
	return strings.Join(labels, " · ")
}

// columnLabel returns the label of a column that is named after a place, "" if the place has no label.
func columnLabel(e *stages.Env, axes, ids []string) string {
	if label := labelsOf(e, axes, ids); label != strings.Join(ids, " · ") {
		return label
	}
	return ""
}
