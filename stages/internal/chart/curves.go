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

// Curves are panels of lines over [0,1] with bands around them.
type Curves struct {
	Title, YLabel string
	Grid
	Panels []CurvePanel
	ByRow  bool       // each row of panels has its own scale; otherwise all have one
	Within [2]float64 // what the scale needn't go beyond
	W, H   float64    // of the data area of a panel, in points

	// Names are those of the lines, in the order of the legend. With Shown, which holds at most as many names
	// as there are colours, only those lines are coloured, with their names at their ends; the others are
	// grey.
	Names, Shown []string
	Hidden       []string // of Names, lines that an area stands for
	Area         string   // what the panels' areas are, for the legend; "" without any
	Level        string   // what the panels' levels are, for the legend
	Chance       float64  // a dotted line across all panels; 0 for none
}

// A CurvePanel is one plot of curves.
type CurvePanel struct {
	Title, XLabel string
	Lines         []Line
	Level         float64     // a dashed line across the panel; NaN for none
	Area          [][]float64 // the two lines' values that bound an area; nil for none
	AreaX         []float64
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

// Legend entries of lines that panels may have across.
var (
	levelStyle  = draw.LineStyle{Color: Ink, Width: 1, Dashes: []vg.Length{4, 2}}
	chanceStyle = draw.LineStyle{Color: Soft, Width: 1, Dashes: []vg.Length{1.5, 2}}
	areaFill    = color.NRGBA{110, 110, 110, 60}
)

// span returns the least and the greatest value that a panel shows.
func (k *Curves) span(panel CurvePanel) (r [2]float64) {
	r = [2]float64{math.Inf(1), math.Inf(-1)}
	add := func(ys ...float64) {
		for _, y := range ys {
			if finite(Point{X: y}) {
				r = [2]float64{min(r[0], y), max(r[1], y)}
			}
		}
	}
	for _, line := range panel.Lines {
		add(line.Y...)
		add(line.Low...)
		add(line.High...)
	}
	if add(panel.Level); r[0] <= r[1] {
		if k.Chance != 0 {
			add(k.Chance)
		}
		r = [2]float64{max(r[0], k.Within[0]), min(r[1], k.Within[1])}
	}
	return r
}

// Figure draws the curves. Where a line lies on one that comes before it in Names it is dashed, so that both
// are seen.
func (k *Curves) Figure() Figure {
	ranges := make([][2]float64, len(k.Panels))
	for i, panel := range k.Panels {
		ranges[i] = k.span(panel)
	}
	scales := k.scales(ranges, k.ByRow, Ticks)
	l := layout{title: k.Title, grid: k.Grid, w: vg.Length(k.W), h: vg.Length(k.H)}
	for i, panel := range k.Panels {
		scale := scales[i]
		p := newPlot(panel.Title)
		p.X.Min, p.X.Max, p.X.Tick.Marker = 0, 1, ticks([]float64{0, 0.25, 0.5, 0.75, 1})
		p.Y.Min, p.Y.Max, p.Y.Tick.Marker = scale[0], scale[len(scale)-1], ticks(scale)
		p.X.Padding, p.Y.Padding = 0, 0
		alike := func(n int) bool { return k.Panels[n].XLabel == panel.XLabel }
		if !k.beyond(i, len(k.Panels), 1, alike) {
			p.X.Label.Text = wrap(p.X.Label.TextStyle, panel.XLabel, l.w)
		}
		if k.first(i, len(k.Panels)) {
			p.Y.Label.Text = oneLine(k.YLabel)
		}
		p.Add(gridLines(false))
		if panel.Area != nil {
			p.Add(between{panel.AreaX, panel.Area[0], panel.Area[1]})
		}
		lines := slices.DeleteFunc(slices.Clone(panel.Lines), func(line Line) bool {
			return slices.Contains(k.Hidden, line.Name)
		})
		slices.SortStableFunc(lines, func(a, b Line) int { // the grey ones below
			return cmp.Compare(slices.Index(k.Shown, a.Name), slices.Index(k.Shown, b.Name))
		})
		for _, line := range lines {
			if k.Shown == nil || slices.Contains(k.Shown, line.Name) {
				col, _ := k.colour(line.Name)
				p.Add(band{line, color.NRGBA{col.R, col.G, col.B, 56}})
			}
		}
		if k.Chance != 0 {
			p.Add(levelLine(k.Chance, chanceStyle))
		}
		if !math.IsNaN(panel.Level) {
			p.Add(levelLine(panel.Level, levelStyle))
		}
		below := Below(lines, scale[len(scale)-1]-scale[0])
		for n, line := range lines {
			col, dash := k.colour(line.Name)
			style := draw.LineStyle{Color: col, Width: lineWidth, Dashes: dash}
			if k.Shown != nil && !slices.Contains(k.Shown, line.Name) {
				style.Width = 0.8
			}
			p.Add(stroke{line, style, below[n]})
		}
		if k.Shown != nil {
			p.Add(endLabels{k, lines})
		}
		l.plots = append(l.plots, p)
	}
	l.legend = k.legend()
	return l.figure()
}

// legend returns the legend of the lines, nil if it isn't needed.
func (k *Curves) legend() *plot.Legend {
	l := newLegend()
	entries := 0
	add := func(name string, sample plot.Thumbnailer) {
		l.Add(oneLine(name), sample)
		entries++
	}
	if k.Shown == nil && len(k.Names) > 1 {
		for _, name := range k.Names {
			if slices.Contains(k.Hidden, name) {
				continue
			}
			col, dash := k.colour(name)
			add(name, &plotter.Line{LineStyle: draw.LineStyle{Color: col, Width: 2, Dashes: dash}})
		}
	}
	if k.Area != "" {
		grey := tint(Soft, float64(areaFill.A)/255)
		add(k.Area, swatch{grey, grey})
	}
	if k.Level != "" {
		add(k.Level, &plotter.Line{LineStyle: levelStyle})
	}
	if k.Chance != 0 {
		add("chance", &plotter.Line{LineStyle: chanceStyle})
	}
	if entries == 0 {
		return nil
	}
	return l
}

// Below returns, for every line and every point of it, how many earlier lines run through the point: within
// half a percent of the scale's length.
func Below(lines []Line, scale float64) [][]int {
	out := make([][]int, len(lines))
	for i, line := range lines {
		out[i] = make([]int, len(line.Y))
		for _, other := range lines[:i] {
			if !slices.Equal(other.X, line.X) {
				continue
			}
			for k, y := range line.Y {
				if math.Abs(y-other.Y[k]) <= 0.005*scale {
					out[i][k]++
				}
			}
		}
	}
	return out
}

func levelLine(at float64, style draw.LineStyle) plot.Plotter { return level{at, style, false} }

// A stroke draws a line, interrupted where it isn't finite, and dashed where it lies on others: the more of
// them, the shorter the dashes, so that all are seen.
type stroke struct {
	line  Line
	style draw.LineStyle
	below []int // by point: how many lines it lies on
}

func (s stroke) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	on := func(i int) int { return min(s.below[i], s.below[i+1]) } // of the piece from point i
	for _, run := range runsOf(s.line.Y) {
		for from := run[0]; from < run[1]-1; {
			to := from + 1
			for to < run[1]-1 && on(to) == on(from) {
				to++
			}
			var points []vg.Point
			for i := from; i <= to; i++ {
				points = append(points, vg.Point{X: x(s.line.X[i]), Y: y(s.line.Y[i])})
			}
			style := s.style
			if n := on(from); n > 0 {
				dash := 5 / vg.Length(int(1)<<min(n-1, 2))
				style.Dashes = []vg.Length{dash, 10 - dash}
			}
			c.StrokeLines(style, c.ClipLinesXY(simplified(points, unseen))...)
			from = to
		}
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
		fillBetween(c, b.fill, x, y, b.line.X, b.line.High, b.line.Low, run)
	}
}

// between fills the area between two lines.
type between struct{ x, a, b []float64 }

func (f between) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, run := range runsOf(f.a, f.b) {
		fillBetween(c, areaFill, x, y, f.x, f.a, f.b, run)
	}
}

// fillBetween fills the area between two lines along a run of their points.
func fillBetween(c draw.Canvas, fill color.NRGBA, x, y func(float64) vg.Length, at, a, b []float64,
	run [2]int) {
	if run[1]-run[0] < 2 {
		return
	}
	var there, back []vg.Point
	for i := run[0]; i < run[1]; i++ {
		there = append(there, vg.Point{X: x(at[i]), Y: y(a[i])})
		back = append(back, vg.Point{X: x(at[i]), Y: y(b[i])})
	}
	slices.Reverse(back)
	area := c.ClipPolygonXY(append(simplified(there, unseen), simplified(back, unseen)...))
	if len(area) > 2 {
		c.FillPolygon(fill, area)
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
