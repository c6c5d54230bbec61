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
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/interval"
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

// Exactly are the parameters of reports that estimate what exact scores of all images would say.
type Exactly struct {
	Exact string `yaml:"exact" key:"added" doc:"float32: means, intervals and tests are those of float32, estimated of scores in a faster precision: float32 is computed for a random part of the images alone, as many as have intervals grow by at most 2 %"`
	Cheap string `yaml:"cheap" key:"added" doc:"exact: the precision of the scores, as the answer calls it; default: that of the stages that are computed once more"`
	Pilot int    `yaml:"pilot" key:"added" doc:"exact: number of images of the pilot, whose differences say how many images are computed in float32" min:"8" max:"100000"`
}

// usualPilot is the default of Pilot.
const usualPilot = 32

// Validate refuses other precisions.
func (x Exactly) Validate() error {
	if x.Exact != "" && x.Exact != stages.Float32 {
		return stages.BadField("exact", "exact is %s, or left out: %q isn't the precision of a reference",
			stages.Float32, x.Exact)
	}
	return nil
}

// exactDoc describes them in the documentation of stages.
const exactDoc = `
With exact: float32, float32's answer is estimated from scores in a faster precision: the
stages between the images and the scores run once more in float32, for a random
pilot of the images and then for as many others as keep intervals from growing by more than
2 %. Means are the difference estimator's, without bias whatever the error:
Angelopoulos et al., "Prediction-Powered Inference", Science 2023. p is of the signed-rank
test with ranks that are estimated alike. docs/exact.md has the formulas.`

// exactPorts are the inputs that they add, for cheap scores on a port. The engine feeds them where the
// parameter exact is set.
func exactPorts(of string) []stages.Port {
	again := stages.Again{Of: of, Param: "precision", As: "exact", From: "cheap", Draw: "dataset/draw"}
	pilot, second := again, again
	pilot.Count, second.Size, second.After = "pilot", "dataset/second-phase", "pilot"
	return []stages.Port{
		{Name: "pilot", Type: stages.Scores, Averages: true, Optional: true, Added: true, Again: &pilot,
			Doc: "exact scores of a random pilot of the images"},
		{Name: "exact", Type: stages.Scores, Averages: true, Optional: true, Added: true, Again: &second,
			Doc: "exact scores of a random part of the other images"},
	}
}

// check refuses what has no exact answer.
func (x Exactly) check(by []string, wired func(string) bool) error {
	switch given := x.Exact != "" || wired("exact"); {
	case x.Exact != "" && wired("exact"):
		return stages.BadField("exact", "exact is wired: leave out the parameter, which wires it")
	case wired("pilot") && !wired("exact"):
		return fmt.Errorf("pilot is wired without exact, the scores of the second phase")
	case given && len(by) > 0:
		return stages.BadField("by", "groups of few images have too few exact scores: leave out by or exact")
	}
	return nil
}

// An exactness says how much of the scores was measured exactly.
type exactness struct {
	cheap        string // the precision of the others; "" if unknown
	items        string
	measured, of [2]int  // items: the fewest and the most of a cell
	growth       float64 // the largest of an interval
}

// addExact gives cells what is on the ports of exactPorts. It returns nil if nothing is.
func (p Exactly) addExact(ctx context.Context, e *stages.Env, of string, cells []*cell) (*exactness, error) {
	if !e.Wired("exact") {
		return nil, nil
	}
	if err := scores.AddExact(ctx, cells, e.Ports["pilot"], e.Ports["exact"]); err != nil {
		return nil, err
	}
	x := &exactness{items: stages.ItemsOf(e.Ports[of]), cheap: cmp.Or(p.Cheap, "a faster precision")}
	for i, c := range cells {
		s := c.Sample()
		n, all := s.Measured(), len(s.Exact)
		if i == 0 {
			x.measured, x.of = [2]int{n, n}, [2]int{all, all}
		}
		x.measured = [2]int{min(x.measured[0], n), max(x.measured[1], n)}
		x.of = [2]int{min(x.of[0], all), max(x.of[1], all)}
		x.grew(s)
	}
	return x, nil
}

// grew notes the interval of a sample.
func (x *exactness) grew(s interval.Sample) {
	if g := s.Growth(); x != nil && g > x.growth {
		x.growth = g
	}
}

// title is what the title of a table ends with.
func (x *exactness) title() string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf(", float32 of %s of %s", span(x.measured),
		english.CountOf(x.of[1], x.items))
}

// sentence says what means are of, with a space before it; "" where all scores are as they are.
func (x *exactness) sentence() string {
	if x == nil {
		return ""
	}
	text := fmt.Sprintf(" This is float32's answer from passes in %s: %s of %s were computed in float32",
		x.cheap, span(x.measured), english.CountOf(x.of[1], x.items))
	if !math.IsInf(x.growth, 1) {
		text += fmt.Sprintf(", and intervals grew by at most %.1f %%", 100*x.growth)
	}
	return text + "."
}

// span writes the fewest and the most.
func span(n [2]int) string {
	if n[0] == n[1] {
		return fmt.Sprint(n[0])
	}
	return fmt.Sprintf("%d to %d", n[0], n[1])
}
