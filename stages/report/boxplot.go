package report

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
)

// BoxplotParams are the parameters of [Boxplot].
type BoxplotParams struct {
	X       string   `yaml:"x" axis:"scores" doc:"the axis whose ids are places on the x-axis"`
	Group   string   `yaml:"group" axis:"scores,optional" doc:"the axis whose ids are colours of boxes"`
	Facet   []string `yaml:"facet" axis:"scores" doc:"axes whose ids are panels; other axes are appended"`
	Columns int      `yaml:"columns" doc:"panels per row" min:"1" max:"6"`
	Title   string   `yaml:"title" doc:"a title"`
}

// Boxplot draws the distributions of scores over images (Tukey, "Exploratory Data Analysis", 1977).
var Boxplot = stages.New(stages.Def[BoxplotParams]{
	Name: "report/boxplot",
	Doc: `box plots of scores over images

A box reaches from the first to the third quartile of a cell's defined scores, with a
line at the median. Quartiles are the medians of the lower and upper half, the median
itself counting to the upper. Whiskers end at the farthest scores within 1.5 times the
box's height from it, and scores beyond are drawn as points. A diamond marks a box that
is only a line because half of its scores are equal. The table numbers has what is
drawn:

  boxes: {uses: report/boxplot, in: {scores: localisation}, over: all,
          with: {x: method, group: layer, facet: [setting]}}`,
	Version:  2,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs:   []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "scores, of all boxes"}},
	Outputs:  figurePorts(stages.Port{Name: "numbers", Type: stages.TableType, Doc: "one row per box"}),
	Defaults: BoxplotParams{Columns: 3},
	Run:      runBoxplot,
})

func runBoxplot(ctx context.Context, p BoxplotParams, e *stages.Env) error {
	data := e.Ports["scores"]
	axes := axesOf(data)
	x, err := oneAxis("x", p.X, axes)
	if err != nil {
		return err
	}
	used := []string{x}
	if p.Group != "" {
		if _, err := oneAxis("group", p.Group, axes); err != nil {
			return err
		}
		used = append(used, p.Group)
	}
	for _, a := range p.Facet {
		if _, err := oneAxis("facet", a, axes); err != nil {
			return err
		}
		used = append(used, a)
	}
	for i, a := range used {
		if slices.Contains(used[:i], a) {
			return stages.BadField("facet", "the axis %q is named twice in x, group and facet", a)
		}
	}
	facets := slices.Concat(p.Facet, without(axes, used...))
	cells, err := load(ctx, data)
	if err != nil {
		return err
	}
	places, groups, panels := placesOf(e, data, x), placesOf(e, data, p.Group), places(e.Order, data, facets)
	value := columnOf("", cells, func(*cell) bool { return true })
	b := &chart.Boxes{Title: p.Title, YLabel: axisLabel("score", value.Unit), Groups: groups,
		Columns: p.Columns}
	t := boxTable(p.Title, axes, value)
	least, most, infinite, collapsed, undefined := math.MaxInt, 0, 0, 0, 0
	for _, ids := range panels {
		panel := chart.BoxPanel{Title: strings.Join(ids, " · ")}
		for _, place := range places {
			boxes, any := make([][]float64, len(groups)), false
			for k, group := range groups {
				i := slices.IndexFunc(cells, func(c cell) bool {
					return slices.Equal(pick(c.Coord, facets), ids) && idOn(c.Coord, x) == place &&
						idOn(c.Coord, p.Group) == group
				})
				if i < 0 {
					continue
				}
				any = true
				v, missing := cells[i].Defined()
				n := len(v)
				v = slices.DeleteFunc(slices.Clone(v), func(y float64) bool { return math.IsInf(y, 0) })
				box := chart.BoxOf(v)
				if len(v) > 0 && box.Collapsed() {
					collapsed++
				}
				least, most = min(least, len(v)), max(most, len(v))
				infinite, undefined = infinite+n-len(v), undefined+missing
				boxes[k] = v
				t.Rows = append(t.Rows, stages.Row{Keys: pick(cells[i].Coord, axes), Numbers: []stages.Number{
					stages.Number(box.Low), stages.Number(box.Quartile1), stages.Number(box.Median),
					stages.Number(box.Quartile3), stages.Number(box.High), stages.Number(box.Outside),
					stages.Number(len(v)), stages.Number(missing + n - len(v))}})
			}
			if any { // panels may have different methods
				panel.Places, panel.Values = append(panel.Places, place), append(panel.Values, boxes)
			}
		}
		b.Panels = append(b.Panels, panel)
	}
	caption := "Scores over " + count(most, "image")
	if least < most {
		caption = fmt.Sprintf("Scores over %d to %d images", least, most)
	}
	if p.Title != "" {
		caption = p.Title + ": s" + caption[1:]
	}
	caption += " as box plots: quartiles, whiskers to 1.5 times their distance"
	if collapsed > 0 {
		caption += fmt.Sprintf("; a diamond marks boxes that are only a line (%d)", collapsed)
	}
	if undefined+infinite > 0 {
		caption += fmt.Sprintf("; %s undefined or infinite left out", count(undefined+infinite, "score"))
	}
	setFigure(e, b.Figure(), caption+".")
	e.Set("numbers", t.Encode())
	return nil
}

// placesOf returns the ids on an axis in the experiment's order; one "" for no axis.
func placesOf(e *stages.Env, data []stages.Data, axis string) []string {
	if axis == "" {
		return []string{""}
	}
	return mapped(places(e.Order, data, []string{axis}), func(ids []string) string { return ids[0] })
}

func boxTable(title string, axes []string, c stages.Column) stages.Table {
	t := stages.Table{Title: title, Keys: axes}
	if title == "" {
		t.Title = "Quartiles over images"
	}
	for _, name := range []string{"low", "first quartile", "median", "third quartile", "high"} {
		c.Name = name
		t.Numbers = append(t.Numbers, c)
	}
	for i := range t.Numbers[:5] {
		if i != 2 {
			t.Numbers[i].Direction = stages.None
		}
	}
	// A score may cross a fence on another machine.
	t.Numbers = append(t.Numbers, stages.Column{Name: "outside", Unit: "images", Tolerance: 1},
		stages.Column{Name: "n", Unit: "images"}, stages.Column{Name: "undefined", Unit: "scores"})
	return t
}
