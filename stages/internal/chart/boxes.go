package chart

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Boxes are panels of box plots, by Tukey: the box from the first to the third quartile with the median,
// whiskers to the farthest values within 1.5 times the box's height from it, and the values beyond.
type Boxes struct {
	Title, XLabel string
	YLabel        string
	Groups        []string // of the boxes at a place, by colour; one "" for a plot without groups
	Panels        []BoxPanel
	Grid                  // where they are wide, with fewer of them in a row
	ByRow         bool    // each row of panels has its own scale; otherwise all have one
	Log           bool    // powers of ten at equal distances; values are positive
	W, H          float64 // of the data area of a panel, in points; without W, what boxes need
}

// A BoxPanel has boxes at named places.
type BoxPanel struct {
	Title    string
	Places   []string
	Families []string      // of the places: neighbours of the same stand apart from others; nil for none
	Values   [][][]float64 // by place and group; without values there's no box
	Chance   float64       // a dotted line across the panel; 0 for none
}

// Box has the numbers of a box, all NaN without values.
type Box struct {
	Low, Quartile1, Median, Quartile3, High float64 // Low and High are the ends of the whiskers
	Outside                                 int     // number of values beyond the whiskers
}

// Collapsed reports whether the middle half of the values is a single one, so that the box is a line.
func (b Box) Collapsed() bool { return b.Quartile1 == b.Quartile3 }

// BoxOf returns the numbers of a box of finite values.
func BoxOf(v []float64) Box {
	if len(v) == 0 {
		n := math.NaN()
		return Box{n, n, n, n, n, 0}
	}
	b, err := plotter.NewBoxPlot(1, 0, plotter.Values(v))
	if err != nil {
		panic(err) // its only errors are of empty or infinite values
	}
	return Box{b.AdjLow, b.Quartile1, b.Median, b.Quartile3, b.AdjHigh, len(b.Outside)}
}

// Figure draws the boxes. A diamond marks a box that is only a line.
func (b *Boxes) Figure() Figure {
	w, box := b.widths()
	const widest = 900
	if !b.named() {
		b.PerRow = max(min(b.PerRow, int(widest/w)), 1)
	}
	ranges, chance := b.ranges()
	round := Ticks
	if b.Log {
		round = decades
	}
	scales := b.scales(ranges, b.ByRow, round)
	l := layout{title: b.Title, grid: b.Grid, w: w, h: vg.Length(b.H)}
	for i := range b.Panels {
		l.plots = append(l.plots, b.panel(i, scales[i], w, box))
	}
	if len(b.Groups) > 1 || chance {
		l.legend = newLegend()
	}
	for k, name := range b.Groups {
		if len(b.Groups) > 1 {
			line, fill := boxColours(k)
			l.legend.Add(oneLine(name), swatch{fill, line})
		}
	}
	if chance {
		l.legend.Add("chance", &plotter.Line{LineStyle: chanceStyle})
	}
	return l.figure()
}

// most is the largest number of places in a panel.
func (b *Boxes) most() (n int) {
	for _, panel := range b.Panels {
		n = max(n, len(panel.Places))
	}
	return n
}

// widths returns the widths of the data area of a panel and of the room of a box.
func (b *Boxes) widths() (panel, box vg.Length) {
	most := b.most()
	box = 10
	if b.W > 0 { // narrower boxes
		panel = vg.Length(b.W)
		return panel, min(box, 0.8*panel/vg.Length(max(most*len(b.Groups), 1)))
	}
	place := max(box*vg.Length(len(b.Groups))+7, 20)
	return max(vg.Length(most)*place, 150), box
}

// ranges returns the smallest and largest value of each panel, and whether one shows a chance.
func (b *Boxes) ranges() (ranges [][2]float64, chance bool) {
	for _, panel := range b.Panels {
		r := [2]float64{math.Inf(1), math.Inf(-1)}
		for _, place := range panel.Values {
			for _, v := range place {
				for _, y := range v {
					r = [2]float64{min(r[0], y), max(r[1], y)}
				}
			}
		}
		if panel.Chance != 0 && r[0] <= r[1] {
			chance = true
			r = [2]float64{min(r[0], panel.Chance), max(r[1], panel.Chance)}
		}
		ranges = append(ranges, r)
	}
	return ranges, chance
}

// at returns where a value is on its axis.
func (b *Boxes) at(y float64) float64 {
	if b.Log {
		return math.Log10(y)
	}
	return y
}

// panel plots the boxes of panel i.
func (b *Boxes) panel(i int, scale []float64, w, box vg.Length) *plot.Plot {
	panel := b.Panels[i]
	p := newPlot(panel.Title)
	alike := func(n int) bool {
		o := b.Panels[n]
		return slices.Equal(o.Places, panel.Places) && slices.Equal(o.Families, panel.Families)
	}
	places := panel.Places
	if b.beyond(i, len(b.Panels), 1, alike) { // named below
		places = make([]string, len(places))
	}
	name(p, &p.X, places, w/vg.Length(max(b.most(), 1)))
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = scale[0], scale[len(scale)-1], ticks(scale)
	if b.Log {
		p.Y.Tick.Marker = powers(scale)
	}
	if len(places) > 0 && places[0] != "" {
		p.X.Label.Text = oneLine(b.XLabel)
	}
	if b.first(i, len(b.Panels)) {
		p.Y.Label.Text = oneLine(b.YLabel)
	}
	p.Add(gridLines(false))
	if panel.Chance != 0 {
		p.Add(levelLine(b.at(panel.Chance), chanceStyle))
	}
	if panel.Families != nil {
		p.Add(families{panel.Families, !b.beyond(i, len(b.Panels), -1, alike)})
	}
	for place, groups := range panel.Values {
		for group, v := range groups {
			if len(v) > 0 {
				p.Add(b.box(place, group, v, box)...)
			}
		}
	}
	return p
}

// box plots the values of a group at a place.
func (b *Boxes) box(place, group int, v []float64, width vg.Length) []plot.Plotter {
	box, err := plotter.NewBoxPlot(0.7*width, float64(place), plotter.Values(v))
	if err != nil {
		panic(err) // its only errors are of empty or infinite values
	}
	for _, y := range []*float64{&box.Median, &box.Quartile1, &box.Quartile3, &box.AdjLow, &box.AdjHigh,
		&box.Min, &box.Max} {
		*y = b.at(*y)
	}
	for i, y := range box.Values {
		box.Values[i] = b.at(y)
	}
	line, fill := boxColours(group)
	box.Offset = width * (vg.Length(group) - vg.Length(len(b.Groups)-1)/2)
	box.FillColor = fill
	box.BoxStyle = draw.LineStyle{Color: line, Width: 1}
	box.MedianStyle = draw.LineStyle{Color: Ink, Width: lineWidth}
	box.WhiskerStyle = draw.LineStyle{Color: line, Width: 1}
	box.GlyphStyle = draw.GlyphStyle{Color: line, Radius: 1.5, Shape: small{}}
	if !BoxOf(v).Collapsed() {
		return []plot.Plotter{box}
	}
	return []plot.Plotter{box, collapsed{float64(place), box.Median, box.Offset, line}}
}

// boxColours returns the colours of the lines and of the area of a group's boxes.
func boxColours(group int) (line, fill color.RGBA) {
	colours := Lines()
	line = colours[group%len(colours)]
	return line, tint(line, shades[group/len(colours)%len(shades)])
}

// families separates places of different families by a line, and names them above.
type families struct {
	of    []string // of the places
	named bool
}

// runs returns the runs [from, to) of places of one family.
func (f families) runs() (runs [][2]int) {
	for i, from := 1, 0; i <= len(f.of); i++ {
		if i == len(f.of) || f.of[i] != f.of[from] {
			runs, from = append(runs, [2]int{from, i}), i
		}
	}
	return runs
}

func (f families) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	style := words(labelSize)
	style.Color, style.XAlign, style.YAlign = Soft, text.XCenter, text.YBottom
	top := c.Max.Y
	if f.named {
		top += familyRoom
	}
	for _, run := range f.runs() {
		if run[0] > 0 {
			at := x(float64(run[0]) - 0.5)
			c.StrokeLine2(draw.LineStyle{Color: Soft, Width: 0.5}, at, c.Min.Y, at, top)
		}
		if from, to := x(float64(run[0])-0.5), x(float64(run[1])-0.5); f.named {
			at := vg.Point{X: (from + to) / 2, Y: c.Max.Y + 7}
			c.FillText(style, at, fit(style, f.of[run[0]], to-from-2))
		}
	}
}

const familyRoom = labelSize + 8

// GlyphBoxes keeps room for the names.
func (f families) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	if !f.named {
		return nil
	}
	return []plot.GlyphBox{{X: 0.5, Y: 1, Rectangle: vg.Rectangle{Max: vg.Point{Y: familyRoom}}}}
}

// fit shortens a line at its end to a width.
func fit(s text.Style, line string, room vg.Length) string {
	line = oneLine(line)
	if width(s, line) <= room {
		return line
	}
	r := []rune(line)
	for len(r) > 0 && width(s, string(r)+"…") > room {
		r = r[:len(r)-1]
	}
	return string(r) + "…"
}

// shades are the opacities of fills, when the colours of lines are used up.
var shades = []float64{0.45, 0.05, 0.85}

// tint mixes a colour with white.
func tint(c color.RGBA, share float64) color.RGBA {
	return color.RGBA{mix(255, c.R, share), mix(255, c.G, share), mix(255, c.B, share), 255}
}

// swatch is a legend's sample of a filled box.
type swatch struct{ fill, edge color.RGBA }

func (s swatch) Thumbnail(c *draw.Canvas) {
	x0, x1, y0, y1 := c.Min.X+4, c.Max.X-4, c.Min.Y+1, c.Max.Y-1
	box := []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}}
	c.FillPolygon(s.fill, box)
	c.StrokeLines(draw.LineStyle{Color: s.edge, Width: 1}, append(box, box[0]))
}

// collapsed marks a box whose quartiles are equal.
type collapsed struct {
	x, y   float64
	offset vg.Length
	colour color.RGBA
}

func (m collapsed) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	diamond(c, x(m.x)+m.offset, y(m.y), 4, m.colour)
}

func diamond(c draw.Canvas, x, y, r vg.Length, col color.Color) {
	c.FillPolygon(col, []vg.Point{{X: x - r, Y: y}, {X: x, Y: y + r}, {X: x + r, Y: y}, {X: x, Y: y - r}})
}

// small is a glyph of few bytes, for many values: a diamond.
type small struct{}

func (small) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	diamond(*c, at.X, at.Y, s.Radius, s.Color)
}
