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
	"github.com/runexp/runexp/stages/internal/english"
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
	Inputs: []stages.Port{{Name: "scores", Type: stages.Scores, Averages: true,
		Doc: "scores, of all boxes"}},
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
	d := &boxDrawing{BoxplotParams: p, e: e, items: stages.ItemsOf(data), x: x, axes: axes,
		facets: f, cells: cells, places: byFamily(e, x, placesOf(e, data, x)),
		groups: placesOf(e, data, p.Group), least: math.MaxInt}
	value := columnOf("", cells, func(*cell) bool { return true })
	b := &chart.Boxes{Title: p.Title, YLabel: cmp.Or(p.YTitle, scoreLabel(value.Unit)), XLabel: p.XTitle,
		Grid: f.grid, ByRow: f.byRow, Log: p.Log, W: float64(p.Width), H: size(p.Height, 170)}
	for _, group := range d.groups {
		b.Groups = append(b.Groups, e.Label(p.Group, group))
	}
	d.table = boxTable(p.Title, d.items, axes, value)
	var lacks []string
	for n := range f.ids {
		panel, err := d.panel(n)
		if err != nil {
			return err
		}
		b.Panels = append(b.Panels, panel)
		lacks = append(lacks, f.lacks(e, cells, n, p.Group, d.groups)...)
	}
	setFigure(e, b.Figure(), d.caption(lacks))
	e.Set("numbers", d.table.Encode())
	return nil
}

// A boxDrawing makes boxes of cells, and counts what the caption says of them.
type boxDrawing struct {
	BoxplotParams
	e              *stages.Env
	items          string // what has scores: "images"
	x              string
	axes           []string
	facets         facets
	cells          []cell
	places, groups []string // the ids of the boxes

	table       stages.Table
	least, most int // scores of a box
	collapsed   int // boxes that are only a line
	leftOut     int // scores that are undefined or infinite
}

// panel makes the boxes of panel n. Panels may have different places.
func (d *boxDrawing) panel(n int) (chart.BoxPanel, error) {
	ids := d.facets.ids[n]
	panel := chart.BoxPanel{Title: d.facets.titles[n],
		Chance: cmp.Or(d.Chance, chanceOf(d.cells, d.facets.axes, ids))}
	for _, place := range d.places {
		boxes, any := make([][]float64, len(d.groups)), false
		for k, group := range d.groups {
			i := slices.IndexFunc(d.cells, func(c cell) bool {
				return slices.Equal(pick(c.Coord, d.facets.axes), ids) && idOn(c.Coord, d.x) == place &&
					idOn(c.Coord, d.Group) == group
			})
			if i < 0 {
				continue
			}
			any = true
			var err error
			if boxes[k], err = d.box(&d.cells[i]); err != nil {
				return panel, err
			}
		}
		if !any {
			continue
		}
		panel.Places = append(panel.Places, d.e.Label(d.x, place))
		panel.Values = append(panel.Values, boxes)
		if d.e.Families[d.x] != nil {
			panel.Families = append(panel.Families, d.e.Families[d.x][place])
		}
	}
	return panel, nil
}

// box returns the finite scores of a cell, and adds their row to the table.
func (d *boxDrawing) box(c *cell) ([]float64, error) {
	v, undefined := c.Defined()
	defined := len(v)
	v = slices.DeleteFunc(slices.Clone(v), func(y float64) bool { return math.IsInf(y, 0) })
	if d.Log && slices.ContainsFunc(v, func(y float64) bool { return y <= 0 }) {
		return nil, stages.BadField("log", "the score %g has no logarithm", slices.Min(v))
	}
	box, leftOut := chart.BoxOf(v), undefined+defined-len(v)
	if len(v) > 0 && box.Collapsed() {
		d.collapsed++
	}
	d.least, d.most, d.leftOut = min(d.least, len(v)), max(d.most, len(v)), d.leftOut+leftOut
	d.table.Rows = append(d.table.Rows, stages.Row{Keys: pick(c.Coord, d.axes), Numbers: []stages.Number{
		stages.Number(box.Low), stages.Number(box.Quartile1), stages.Number(box.Median),
		stages.Number(box.Quartile3), stages.Number(box.High), stages.Number(box.Outside),
		stages.Number(len(v)), stages.Number(leftOut)}})
	return v, nil
}

// caption says what is drawn, and which cells the experiment lacks.
func (d *boxDrawing) caption(lacks []string) string {
	text := "Scores over " + english.CountOf(d.most, d.items)
	if d.least < d.most {
		text = fmt.Sprintf("Scores over %d to %d %s", d.least, d.most, d.items)
	}
	if d.Title != "" {
		text = d.Title + ": s" + text[1:]
	}
	text += " as box plots: quartiles, whiskers to 1.5 times their distance"
	if d.collapsed > 0 {
		text += fmt.Sprintf("; a diamond marks boxes that are only a line (%d)", d.collapsed)
	}
	if lacks != nil {
		text += "; not in the experiment: " + strings.Join(lacks, ", ")
		if d.Gap != "" {
			text += " (" + d.Gap + ")"
		}
	}
	if d.leftOut > 0 {
		text += fmt.Sprintf("; %s undefined or infinite left out", english.Count(d.leftOut, "score"))
	}
	return text + "."
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

func boxTable(title, items string, axes []string, c stages.Column) stages.Table {
	t := stages.Table{Title: title, Keys: axes}
	if title == "" {
		t.Title = "Quartiles over " + items
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
	t.Numbers = append(t.Numbers, stages.Column{Name: "outside", Unit: items, Tolerance: 1},
		stages.Column{Name: "n", Unit: items}, stages.Column{Name: "undefined", Unit: "scores"})
	return t
}
