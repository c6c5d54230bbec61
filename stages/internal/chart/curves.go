package chart

import (
	"cmp"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Curves are panels of lines over [0,1] with bands around them, all with the same scale.
type Curves struct {
	Title, YLabel string
	Low, High     float64 // the values that the scale spans
	Panels        []CurvePanel
	Columns       int // panels per row

	// Names are those of the lines, in the order of the legend. With Shown, which holds at most as many names
	// as there are colours, only those lines are coloured, with their names at their ends; the others are
	// grey.
	Names, Shown []string
	Level        string // what the panels' levels are, for the legend
}

// A CurvePanel is one plot of curves.
type CurvePanel struct {
	Title, XLabel string
	Lines         []Line
	Level         float64 // a dashed line across the panel; NaN for none
}

// A Line is a curve; Low and High bound its band, or are nil.
type Line struct {
	Name         string
	X            []float64 // of the points, in [0,1], ascending
	Y, Low, High []float64
}

// colour returns the colour of a line, and its dashes when colours are used up.
func (k *Curves) colour(name string) (color.RGBA, []vg.Length) {
	names := k.Names
	if k.Shown != nil {
		names = k.Shown
	}
	i := slices.Index(names, name)
	if i < 0 {
		return color.RGBA{190, 190, 190, 255}, nil
	}
	colours := Lines()
	return colours[i%len(colours)], [][]vg.Length{nil, {5, 2}, {1.5, 2}, {7, 2, 1.5, 2}}[i/len(colours)%4]
}

// Figure draws the curves.
func (k *Curves) Figure() Figure {
	scale := Ticks(k.Low, k.High, 5)
	l := layout{title: k.Title, columns: k.Columns, w: 220, h: 170}
	columns := max(1, min(k.Columns, len(k.Panels)))
	level := draw.LineStyle{Color: Ink, Width: 1, Dashes: []vg.Length{4, 2}}
	for i, panel := range k.Panels {
		p := newPlot(panel.Title)
		p.X.Min, p.X.Max, p.X.Tick.Marker = 0, 1, ticks([]float64{0, 0.25, 0.5, 0.75, 1})
		p.Y.Min, p.Y.Max, p.Y.Tick.Marker = scale[0], scale[len(scale)-1], ticks(scale)
		p.X.Padding, p.Y.Padding = 0, 0
		p.X.Label.Text = oneLine(panel.XLabel)
		if i%columns == 0 {
			p.Y.Label.Text = oneLine(k.YLabel)
		}
		p.Add(gridLines(false))
		lines := slices.Clone(panel.Lines)
		slices.SortStableFunc(lines, func(a, b Line) int { // the grey ones below
			return cmp.Compare(slices.Index(k.Shown, a.Name), slices.Index(k.Shown, b.Name))
		})
		for _, line := range lines {
			if k.Shown == nil || slices.Contains(k.Shown, line.Name) {
				col, _ := k.colour(line.Name)
				p.Add(band{line, color.NRGBA{col.R, col.G, col.B, 56}})
			}
		}
		if !math.IsNaN(panel.Level) {
			p.Add(levelLine(panel.Level, level))
		}
		for _, line := range lines {
			col, dash := k.colour(line.Name)
			style := draw.LineStyle{Color: col, Width: lineWidth, Dashes: dash}
			if k.Shown != nil && !slices.Contains(k.Shown, line.Name) {
				style.Width = 0.8
			}
			p.Add(stroke{line, style})
		}
		if k.Shown != nil {
			p.Add(endLabels{k, lines})
		}
		l.plots = append(l.plots, p)
	}
	if k.Shown == nil && (len(k.Names) > 1 || k.Level != "") {
		l.legend = newLegend()
		for _, name := range k.Names {
			col, dash := k.colour(name)
			style := draw.LineStyle{Color: col, Width: 2, Dashes: dash}
			l.legend.Add(oneLine(name), &plotter.Line{LineStyle: style})
		}
	}
	if k.Level != "" {
		if l.legend == nil {
			l.legend = newLegend()
		}
		l.legend.Add(oneLine(k.Level), &plotter.Line{LineStyle: level})
	}
	return l.figure()
}

func levelLine(at float64, style draw.LineStyle) plot.Plotter { return level{at, style, false} }

// A stroke draws a line, interrupted where it isn't finite.
type stroke struct {
	line  Line
	style draw.LineStyle
}

func (s stroke) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, run := range runsOf(s.line.Y) {
		var points []vg.Point
		for i := run[0]; i < run[1]; i++ {
			points = append(points, vg.Point{X: x(s.line.X[i]), Y: y(s.line.Y[i])})
		}
		c.StrokeLines(s.style, c.ClipLinesXY(points)...)
	}
}

// runsOf returns the runs [from, to) of indices whose values are all finite.
func runsOf(vs ...[]float64) [][2]int {
	var out [][2]int
	from := 0
	for i := range len(vs[0]) + 1 {
		end := i == len(vs[0])
		for _, v := range vs {
			end = end || !finite(Point{X: v[i]})
		}
		if end {
			if i > from {
				out = append(out, [2]int{from, i})
			}
			from = i + 1
		}
	}
	return out
}

// A band fills the area between a line's bounds.
type band struct {
	line Line
	fill color.NRGBA
}

func (b band) Plot(c draw.Canvas, p *plot.Plot) {
	if b.line.Low == nil {
		return
	}
	x, y := p.Transforms(&c)
	for _, run := range runsOf(b.line.Low, b.line.High) {
		var points []vg.Point
		for i := run[0]; i < run[1]; i++ {
			points = append(points, vg.Point{X: x(b.line.X[i]), Y: y(b.line.High[i])})
		}
		for i := run[1] - 1; i >= run[0]; i-- {
			points = append(points, vg.Point{X: x(b.line.X[i]), Y: y(b.line.Low[i])})
		}
		if area := c.ClipPolygonXY(points); len(area) > 2 && run[1]-run[0] > 1 {
			c.FillPolygon(b.fill, area)
		}
	}
}

// endLabels writes the names of coloured lines to the right of their ends, pushed apart where ends are close.
type endLabels struct {
	k     *Curves
	lines []Line
}

const lead = 12 // from the end of a line to its name

func (e endLabels) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	type end struct {
		name  string
		at    vg.Point
		label vg.Length
	}
	var ends []end
	for _, line := range e.lines {
		if runs := runsOf(line.Y); slices.Contains(e.k.Shown, line.Name) && len(runs) > 0 {
			i := runs[len(runs)-1][1] - 1
			at := vg.Point{X: x(line.X[i]), Y: min(max(y(line.Y[i]), c.Min.Y), c.Max.Y)}
			ends = append(ends, end{line.Name, at, at.Y})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(b.at.Y, a.at.Y) })
	const apart = labelSize + 2
	for i := range ends { // downwards, then back up from the lower edge
		if ends[i].label = min(ends[i].label, c.Max.Y); i > 0 {
			ends[i].label = min(ends[i].label, ends[i-1].label-apart)
		}
	}
	for i := len(ends) - 1; i >= 0; i-- {
		floor := c.Min.Y
		if i < len(ends)-1 {
			floor = ends[i+1].label + apart
		}
		ends[i].label = max(ends[i].label, floor)
	}
	for _, end := range ends {
		col, _ := e.k.colour(end.name)
		to := vg.Point{X: c.Max.X + lead, Y: end.label}
		c.StrokeLines(draw.LineStyle{Color: col, Width: 0.6}, []vg.Point{end.at, {X: to.X - 2, Y: to.Y}})
		style := words(labelSize)
		style.Color = col
		style.XAlign = text.XLeft
		c.FillText(style, to, oneLine(end.name))
	}
}

// GlyphBoxes keeps room for the names.
func (e endLabels) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	var longest vg.Length
	for _, name := range e.k.Shown {
		longest = max(longest, width(words(labelSize), name))
	}
	return []plot.GlyphBox{{X: 1, Y: 0.5, Rectangle: vg.Rectangle{Max: vg.Point{X: lead + longest, Y: 1}}}}
}
