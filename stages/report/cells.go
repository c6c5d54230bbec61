// Package report has the stages that make figures, tables and texts: table.go with its marks in
// table_marks.go, leaderboard.go with its text in leaderboard_answer.go, curves.go and aggatt.go with their
// drawing in curves_draw.go and aggatt_draw.go, sheet.go with the choice of images in sheet_items.go, maps at
// the size of tiles in sheet_tile.go, what stands below them in sheet_notes.go, outlines in sheet_outline.go
// and its drawing in sheet_draw.go; boxplot.go draws scores, facets.go arranges panels, heatmap.go,
// intervals.go and critical_difference.go draw tables, with figure.go in common; cells.go has what all share.
// A report combines the cells of whole axes and shows them in the order in which the experiment lists their
// ids.
package report

import (
	"fmt"
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

// agree reports whether two coordinates are equal on the axes that they share.
func agree(a, b []stages.Coord) bool {
	for _, c := range a {
		if id := idOn(b, c.Axis); id != "" && id != c.ID {
			return false
		}
	}
	return true
}

// labelsOf returns what figures and tables call a place: the labels of its ids, or the ids.
func labelsOf(e *stages.Env, axes, ids []string) string {
	labels := make([]string, len(ids))
	for i, id := range ids {
		labels[i] = e.Label(axes[i], id)
	}
	return strings.Join(labels, " · ")
}

// columnLabel returns the label of a column that is called like a place, "" where that has no label.
func columnLabel(e *stages.Env, axes, ids []string) string {
	if label := labelsOf(e, axes, ids); label != strings.Join(ids, " · ") {
		return label
	}
	return ""
}

// count formats a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
