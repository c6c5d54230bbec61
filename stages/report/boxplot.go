package report

import (
	"cmp"
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

	FacetRows    []string `yaml:"facet_rows" axis:"scores" doc:"axes whose ids are rows of a grid of panels, in the place of facet; other axes are appended"`
	FacetColumns []string `yaml:"facet_columns" axis:"scores" doc:"axes whose ids are columns of that grid"`
	Gap          string   `yaml:"gap" doc:"a note where the grid has no panel"`
	Scale        string   `yaml:"scale" doc:"what has one range of the y-axis" choices:"figure|row"`
	Log          bool     `yaml:"log" doc:"powers of ten at equal distances on the y-axis; all scores must be positive"`
	XTitle       string   `yaml:"x_title" doc:"what the x-axis shows; default: nothing"`
	YTitle       string   `yaml:"y_title" doc:"what the y-axis shows; default: score, with its unit"`
	Width        int      `yaml:"width" doc:"of a panel's data area, in points; 0: as wide as boxes are at their best" min:"0" max:"900"`
	Height       int      `yaml:"height" doc:"of a panel's data area, in points" min:"60" max:"600"`
	Chance       float64  `yaml:"chance" doc:"the score of guessing, a dotted line; 0: what the scores tell of it" min:"0" max:"1"`
}

// Boxplot draws the distributions of scores over images (Tukey, "Exploratory Data Analysis", 1977).
var Boxplot = stages.New(stages.Def[BoxplotParams]{
	Name: "report/boxplot",
	Doc: `box plots of scores over images

A box reaches from the first to the third quartile of a cell's defined scores, with a
line at the median. Quartiles are the medians of the lower and upper half, the median
itself counting to the upper. Whiskers end at the farthest scores within 1.5 times the
box's height from it, and scores beyond are drawn as points. A diamond marks a box that
is only a line because half of its scores are equal. Ids of one family stand together.
The dotted line is the mean score of guessing, where that is known. Panels stand one
after another, or in a grid with rows and columns. The table numbers has what is drawn:

  boxes: {uses: report/boxplot, in: {scores: localisation}, over: all,
          with: {x: method, group: layer, facet_rows: [setting], facet_columns: [model]}}`,
	Version:  7,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs:   []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "scores, of all boxes"}},
	Outputs:  figurePorts(stages.Port{Name: "numbers", Type: stages.TableType, Doc: "one row per box"}),
	Defaults: BoxplotParams{Columns: 3, Scale: "figure", Height: 170},
	Run:      runBoxplot,
})

func runBoxplot(ctx context.Context, p BoxplotParams, e *stages.Env) error {
	data := e.Ports["scores"]
	axes := axesOf(data)
	x, err := oneAxis("x", p.X, axes)
	if err != nil {
		return err
	}
	if p.Group != "" {
		if _, err := oneAxis("group", p.Group, axes); err != nil {
			return err
		}
	}
	grid := arrangement{p.Facet, p.FacetRows, p.FacetColumns, p.Columns, p.Gap, p.Scale}
	f, err := grid.facets(e, data, x, p.Group)
	if err != nil {
		return err
	}
	cells, err := load(ctx, data)
	if err != nil {
		return err
	}
	places, groups := byFamily(e, x, placesOf(e, data, x)), placesOf(e, data, p.Group)
	value := columnOf("", cells, func(*cell) bool { return true })
	b := &chart.Boxes{Title: p.Title, YLabel: cmp.Or(p.YTitle, scoreLabel(value.Unit)), XLabel: p.XTitle,
		Grid: f.grid, ByRow: f.byRow, Log: p.Log, W: float64(p.Width), H: size(p.Height, 170)}
	for _, group := range groups {
		b.Groups = append(b.Groups, e.Label(p.Group, group))
	}
	t := boxTable(p.Title, axes, value)
	var lacks []string
	least, most, infinite, collapsed, undefined := math.MaxInt, 0, 0, 0, 0
	for n, ids := range f.ids {
		panel := chart.BoxPanel{Title: f.titles[n], Chance: cmp.Or(p.Chance, chanceOf(cells, f.axes, ids))}
		for _, place := range places {
			boxes, any := make([][]float64, len(groups)), false
			for k, group := range groups {
				i := slices.IndexFunc(cells, func(c cell) bool {
					return slices.Equal(pick(c.Coord, f.axes), ids) && idOn(c.Coord, x) == place &&
						idOn(c.Coord, p.Group) == group
				})
				if i < 0 {
					continue
				}
				any = true
				v, missing := cells[i].Defined()
				n := len(v)
				v = slices.DeleteFunc(slices.Clone(v), func(y float64) bool { return math.IsInf(y, 0) })
				if p.Log && slices.ContainsFunc(v, func(y float64) bool { return y <= 0 }) {
					return stages.BadField("log", "the score %g has no logarithm", slices.Min(v))
				}
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
				panel.Places = append(panel.Places, e.Label(x, place))
				panel.Values = append(panel.Values, boxes)
				if e.Families[x] != nil {
					panel.Families = append(panel.Families, e.Families[x][place])
				}
			}
		}
		b.Panels = append(b.Panels, panel)
		lacks = append(lacks, f.lacks(e, cells, n, p.Group, groups)...)
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
	if lacks != nil {
		caption += "; not in the experiment: " + strings.Join(lacks, ", ")
		if p.Gap != "" {
			caption += " (" + p.Gap + ")"
		}
	}
	if undefined+infinite > 0 {
		caption += fmt.Sprintf("; %s undefined or infinite left out", count(undefined+infinite, "score"))
	}
	setFigure(e, b.Figure(), caption+".")
	e.Set("numbers", t.Encode())
	return nil
}

// byFamily moves the ids on an axis to the first of their family. An id without a family keeps its place.
func byFamily(e *stages.Env, axis string, ids []string) []string {
	var out []string
	for _, id := range ids {
		family := e.Families[axis][id]
		if slices.Contains(out, id) {
			continue
		}
		out = append(out, id)
		for _, other := range ids {
			if family != "" && e.Families[axis][other] == family && !slices.Contains(out, other) {
				out = append(out, other)
			}
		}
	}
	return out
}

// chanceOf returns the score of guessing that all cells of a panel have, 0 if they don't.
func chanceOf(cells []cell, axes, ids []string) float64 {
	chance, first := 0.0, true
	for _, c := range cells {
		if !slices.Equal(pick(c.Coord, axes), ids) {
			continue
		}
		if x := c.Measure.Chance; first {
			chance, first = x, false
		} else if x != chance {
			return 0
		}
	}
	return chance
}

// scoreLabel names scores by their unit.
func scoreLabel(unit string) string {
	if unit == "share" {
		return "score" // the scale from 0 to 1 shows that itself
	}
	return axisLabel("score", unit)
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
