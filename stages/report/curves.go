package report

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/interval"
)

// CurvesParams are the parameters of [Curves].
type CurvesParams struct {
	Line     string `yaml:"line" axis:"curves,optional" doc:"the axis whose ids are lines; default: the only axis"`
	Response string `yaml:"response" doc:"the response to plot"`
	Band     string `yaml:"band" doc:"the band around a line: the mean's interval, or that without the differences between images common to all lines (paired); auto: the interval with up to four lines" choices:"auto|interval|paired|none"`
	Columns  int    `yaml:"columns" doc:"panels per row" min:"1" max:"6"`
	Title    string `yaml:"title" doc:"a title"`
	Points   int    `yaml:"points" doc:"how many points of a line the table has, the nearest to equal distances; 0: all" min:"0" max:"100000"`

	Reference string `yaml:"reference" doc:"a dashed line in each panel at the mean of the lines' first points, as the accuracy before removal (start)" choices:"start|none"`

	Facet        []string `yaml:"facet" axis:"curves,optional" doc:"axes whose ids are panels; other axes are appended"`
	FacetRows    []string `yaml:"facet_rows" axis:"curves,optional" doc:"axes whose ids are rows of a grid of panels, in the place of facet; other axes are appended"`
	FacetColumns []string `yaml:"facet_columns" axis:"curves,optional" doc:"axes whose ids are columns of that grid"`
	Gap          string   `yaml:"gap" doc:"a note where the grid has no panel"`
	Scale        string   `yaml:"scale" doc:"what has one range of the y-axis" choices:"figure|row"`
	X            string   `yaml:"x_title" doc:"what the x-axis shows; default: how pixels are removed"`
	Y            string   `yaml:"y_title" doc:"what the y-axis shows; default: the response"`
	Width        int      `yaml:"width" doc:"of a panel's data area, in points" min:"60" max:"600"`
	Height       int      `yaml:"height" doc:"of a panel's data area, in points" min:"60" max:"600"`
	Chance       float64  `yaml:"chance" doc:"the response of guessing, a dotted line; 0: none" min:"0" max:"1"`
	Area         []string `yaml:"area" doc:"two lines between which the area is filled; a third one is named by the area and not drawn"`
}

// Curves plots mean curves with their intervals, in one panel for each combination of the axes that aren't
// lines, all with the same scale. An image whose curve isn't finite is excluded from its line. The band
// "paired" removes each image's own level, on which comparisons between lines don't depend (Cousineau 2005,
// with Morey's correction of 2008).
var Curves = stages.New(stages.Def[CurvesParams]{
	Name: "report/curves",
	Doc: `mean curves of a response as pixels are removed or inserted

One line per id of the axis line, one panel per combination of the other axes. Panels
stand one after another, or in a grid with rows and columns, and have the same scales,
or with scale: row those of their row. A line is dashed where it lies on one that comes
before it. Lines are means over the images; the table points has the numbers. Of seeds,
as axes of replicates, every image counts with the mean of its curves. Of more than eight lines the three best and the three worst have colours and their names at
their ends; the others are grey. Best and worst are by the mean of scores, which know
whether a high one is good; without scores by the area under the mean curves, where a
small one is good, and a large one with order insertion or lerf:

  auc:  {uses: score/auc, in: {curves: curves}}
  plot: {uses: report/curves, in: {curves: curves, scores: auc}, over: all, with: {line: method}}

An area between two lines may stand for a third one:

  parts: {uses: report/curves, in: {curves: parts}, over: [method, part, protocol], with: {line: part,
          response: share, area: [mr, dr, ap], facet_rows: [method], facet_columns: [protocol]}}`,
	Version:  10,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs: []stages.Port{
		{Name: "curves", Type: stages.Curves, Averages: true, Doc: "the curves of all lines and panels"},
		{Name: "scores", Type: stages.Scores, Averages: true, Optional: true, Added: true,
			Doc: "by which lines are best and worst; default: the area under the curve"},
	},
	Outputs: figurePorts(stages.Port{Name: "points", Type: stages.TableType,
		Doc: "one row per line and point"}),
	Defaults: CurvesParams{Response: "probability", Band: "auto", Columns: 3, Reference: "none",
		Scale: "figure",
		Width: 220, Height: 170},
	Run: runCurves,
})

// A plotLine is one line of the figure.
type plotLine struct {
	coord  []stages.Coord
	facts  stages.Facts
	curves map[string][]float64 // by item
	items  []string             // the items included, in order

	centred map[string][]float64 // by item: the curve minus the mean over all lines, or nil
	shares  []float64            // by point: the fraction that is replaced; nil without items
	skipped int                  // number of curves that aren't finite
	seeds   int                  // over which curves are averaged; 0 if they don't depend on one

	mean, low, high []float64 // by point; NaN without an interval

	cost float64 // the smaller, the better the line; NaN if unknown
}

func runCurves(ctx context.Context, p CurvesParams, e *stages.Env) error {
	data := e.Ports["curves"]
	axes := axesOf(data)
	line := ""
	if len(axes) > 0 || p.Line != "" {
		var err error
		if line, err = oneAxis("line", p.Line, axes); err != nil {
			return err
		}
	}
	p.Response = responseOf(data, p.Response)
	strands := make([]*plotLine, len(data))
	for i, d := range data {
		s, err := readLine(ctx, d, p.Response)
		if err != nil {
			return err
		}
		strands[i] = s
	}
	strands, err := averagedLines(strands, data)
	if err != nil {
		return err
	}
	scores, err := load(ctx, e.Ports["scores"])
	if err != nil {
		return err
	}
	grid := arrangement{p.Facet, p.FacetRows, p.FacetColumns, p.Columns, p.Gap, p.Scale}
	f, err := grid.facets(e, data, line)
	if err != nil {
		return err
	}
	var panels [][]*plotLine
	for _, ids := range f.ids {
		var panel []*plotLine
		for _, s := range strands {
			if slices.Equal(pick(s.coord, f.axes), ids) {
				panel = append(panel, s)
			}
		}
		slices.SortStableFunc(panel,
			func(a, b *plotLine) int {
				return e.Order.Compare(line, idOn(a.coord, line), idOn(b.coord, line))
			})
		if err := p.summarise(e, panel, scores); err != nil {
			return err
		}
		panels = append(panels, panel)
	}
	ids := lineNames(panels, e.Order, line)
	if err := p.checkArea(ids); err != nil {
		return err
	}
	if p.Band == "auto" {
		p.Band = "interval"
		if len(ids) > fewLines {
			p.Band = "none"
		}
	}
	by := ""
	switch {
	case len(ids) <= most:
	case e.Wired("scores"):
		by = "score"
	default:
		by = "area"
	}
	k := drawCurves(e, p, panels, line, f)
	k.ByRow = f.byRow
	setFigure(e, k.Figure(), curvesCaption(p, stages.ItemsOf(data), panels, by, hidden(k)))
	e.Set("points", curvesTable(p, stages.ItemsOf(data), panels, axes).Encode())
	return nil
}

// summarise computes what is drawn of the lines of a panel, and the costs by which the best are chosen: their
// scores, or else their areas.
func (p CurvesParams) summarise(e *stages.Env, panel []*plotLine, scores []cell) (err error) {
	if p.Band == "paired" {
		pair(panel)
	}
	for _, s := range panel {
		s.summarise(len(panel))
		if s.cost = s.area(); e.Wired("scores") {
			if s.cost, err = costOf(scores, s.coord); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkArea returns an error for an area that isn't between two lines.
func (p CurvesParams) checkArea(lines []string) error {
	if n := len(p.Area); n != 0 && n != 2 && n != 3 {
		return stages.BadField("area",
			"area has %d lines: name two, and perhaps one that the area stands for", n)
	}
	for i, id := range p.Area {
		if !slices.Contains(lines, id) {
			return stages.BadName("area", id, lines, "there is no line %q", id)
		}
		if slices.Contains(p.Area[:i], id) {
			return stages.BadName("area", id, lines, "area names the line %q twice", id)
		}
	}
	return nil
}

// responseOf returns the name of a response of the curves. Those of an expression have its value in the place
// of a class's probability and logit.
func responseOf(curves []stages.Data, response string) string {
	if len(curves) > 0 && curves[0].Facts["responses"] == "value" && response != "correct" {
		return "value"
	}
	return response
}

func readLine(ctx context.Context, d stages.Data, response string) (*plotLine, error) {
	s := &plotLine{coord: d.Coord, facts: d.Facts, curves: map[string][]float64{}}
	names := strings.Split(d.Facts["responses"], ",")
	at := slices.Index(names, response)
	if at < 0 {
		return nil, stages.BadField("response", "the curves have no response %q, only %s", response,
			strings.Join(names, ", "))
	}
	length := 0
	for m, err := range d.All(ctx) {
		if err != nil {
			return nil, err
		}
		t, err := stages.DecodeTensor(m.Data)
		if err != nil {
			return nil, fmt.Errorf("curve of %q: %w", m.ID, err)
		}
		if len(t.Shape) != 2 || t.Shape[0] != len(names) || t.Shape[1] < 2 ||
			length > 0 && t.Shape[1] != length {
			return nil, fmt.Errorf("the curve of %q has shape %v, which doesn't match the others or the "+
				"responses %q", m.ID, t.Shape, d.Facts["responses"])
		}
		length = t.Shape[1]
		y := t.Float64s()[at*length : (at+1)*length]
		if slices.ContainsFunc(y, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
			s.skipped++
			continue
		}
		s.curves[m.ID] = y
		s.items = append(s.items, m.ID)
	}
	if length > 0 {
		var err error
		if s.shares, err = metric.Shares(d.Facts, length); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// pair keeps the images that all lines have, with curves of equal lengths, and centres them over the lines.
func pair(panel []*plotLine) {
	for _, s := range panel {
		s.items = slices.DeleteFunc(s.items, func(id string) bool {
			for _, o := range panel {
				if len(o.curves[id]) != len(s.curves[id]) {
					return true
				}
			}
			return false
		})
	}
	if len(panel) < 2 {
		return
	}
	for _, s := range panel {
		s.centred = map[string][]float64{}
	}
	for _, id := range panel[0].items {
		n := len(panel[0].curves[id])
		level := make([]float64, n)
		for _, s := range panel {
			for k, y := range s.curves[id] {
				level[k] += y / float64(len(panel))
			}
		}
		for _, s := range panel {
			y := slices.Clone(s.curves[id])
			for k := range y {
				y[k] -= level[k]
			}
			s.centred[id] = y
		}
	}
}

// summarise computes the mean and its interval at every point, in a panel of the given number of lines.
func (s *plotLine) summarise(lines int) {
	n := 2
	if len(s.items) > 0 {
		n = len(s.curves[s.items[0]])
	}
	s.mean, s.low, s.high = make([]float64, n), make([]float64, n), make([]float64, n)
	v, w := make([]float64, len(s.items)), make([]float64, len(s.items))
	for k := range n {
		for i, id := range s.items {
			v[i] = s.curves[id][k]
			if s.centred != nil {
				w[i] = s.centred[id][k]
			}
		}
		s.mean[k], s.low[k], s.high[k] = interval.Mean(v)
		if s.centred != nil {
			wide := math.Sqrt(float64(lines) / float64(lines-1))
			mean, low, high := interval.Mean(w)
			s.low[k], s.high[k] = s.mean[k]+wide*(low-mean), s.mean[k]+wide*(high-mean)
		}
	}
}

// area returns the area under the mean curve, negated if a large one is good: a smaller area is better if
// the most relevant pixels are removed first.
func (s *plotLine) area() float64 {
	if len(s.items) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for i := 1; i < len(s.mean); i++ {
		sum += (s.shares[i] - s.shares[i-1]) * (s.mean[i] + s.mean[i-1]) / 2
	}
	if o := s.facts["order"]; o == "insertion" || o == "lerf" {
		return -sum
	}
	return sum
}

// costOf returns the mean of the defined scores of the cells that agree with a line, negated if a high one
// is good, or NaN if there are none.
func costOf(cells []cell, line []stages.Coord) (float64, error) {
	sum, n := 0.0, 0.0
	for _, c := range cells {
		if !agree(c.Coord, line) {
			continue
		}
		sign := 1.0
		switch c.Measure.Direction {
		case stages.None:
			return 0, errors.New("port scores: its scores have no better end, so no line is best or worst")
		case stages.Higher:
			sign = -1
		}
		v, _ := c.Defined()
		for _, x := range v {
			sum, n = sum+sign*x, n+1
		}
	}
	return sum / n, nil
}

// shown returns the indices of the n points that are in the table.
func (p CurvesParams) shown(n int) []int {
	some := p.Points
	if some == 0 || some > n {
		some = n
	}
	at := make([]int, some)
	for i := range at {
		at[i] = (i*(n-1) + (some-1)/2) / max(1, some-1)
	}
	return at
}

func curvesTable(p CurvesParams, items string, panels [][]*plotLine, axes []string) stages.Table {
	// The mean at a point differs by less than this between machines; the difference is larger than an
	// area's, which is a mean over points.
	const tolerance = 5e-3
	t := stages.Table{
		Title: "Mean curves of " + p.Response,
		Keys:  append(slices.Clone(axes), "share"),
		Numbers: []stages.Column{
			{Name: "mean", Unit: p.Response, Tolerance: tolerance, Digits: meanDigits},
			{Name: "low", Unit: p.Response, Tolerance: 2 * tolerance, Digits: meanDigits},
			{Name: "high", Unit: p.Response, Tolerance: 2 * tolerance, Digits: meanDigits},
			{Name: "n", Unit: items},
		},
	}
	for _, panel := range panels {
		for _, s := range panel {
			for _, k := range p.shown(len(s.mean)) {
				y, share := s.mean[k], float64(k)/float64(len(s.mean)-1)
				if len(s.items) > 0 {
					share = s.shares[k]
				}
				t.Rows = append(t.Rows, stages.Row{
					Keys: append(pick(s.coord, axes), fmt.Sprintf("%.4f", share)),
					Numbers: []stages.Number{stages.Number(y), stages.Number(s.low[k]),
						stages.Number(s.high[k]), stages.Number(len(s.items))},
				})
			}
		}
	}
	return t
}
