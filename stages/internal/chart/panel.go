package chart

import (
	"image"
	"image/color"
	"math"
	"strconv"
)

// A Curve is a line of a [Panel]; Low and High bound its band, or are nil.
type Curve struct {
	X            []float64 // of the points, in [0,1]; nil if they lie at equal distances
	Y, Low, High []float64
	Colour       color.RGBA
	Dash         []float64
}

// x returns where point i lies.
func (k *Curve) x(i int) float64 {
	if k.X != nil {
		return k.X[i]
	}
	return float64(i) / float64(len(k.Y)-1)
}

// A Panel is a small plot of curves over [0,1].
type Panel struct {
	Title          string
	XLabel, YLabel string // "" in panels that share another's label
	Low, High      float64
	Ticks          []float64
	Curves         []Curve
}

const (
	plotFont = 12
	tickSize = 4
)

// The fonts of figures.
var (
	TextFont  = Font{Size: plotFont}
	TitleFont = Font{Size: plotFont, Bold: true}
	SmallFont = Font{Size: 11}
)

// Draw draws the panel with its title, axes and labels in r.
func (p *Panel) Draw(c *Canvas, r image.Rectangle) {
	box := image.Rect(r.Min.X+54, r.Min.Y+24, r.Max.X-14, r.Max.Y-42)
	w, h := float64(box.Dx()), float64(box.Dy())
	at := func(x, y float64) Point {
		return Point{float64(box.Min.X) + float64(x*w),
			float64(box.Max.Y) - float64((y-p.Low)/(p.High-p.Low)*h)}
	}
	c.Text(box.Min.X, r.Min.Y+15, TitleFont, Ink, Left, c.Fit(TitleFont, p.Title, box.Dx()))
	for _, t := range p.Ticks {
		y := int(math.Round(at(0, t).Y))
		c.Fill(image.Rect(box.Min.X, y, box.Max.X, y+1), Rule)
		c.Text(box.Min.X-7, y+4, SmallFont, Soft, Right, TickText(t, p.Ticks))
	}
	for _, t := range []float64{0, 0.25, 0.5, 0.75, 1} {
		x := int(math.Round(at(t, 0).X))
		c.Fill(image.Rect(x, box.Max.Y, x+1, box.Max.Y+tickSize), Soft)
		c.Text(x, box.Max.Y+17, SmallFont, Soft, Center, strconv.FormatFloat(t, 'g', -1, 64))
	}
	for _, k := range p.Curves {
		if k.Low == nil {
			continue
		}
		low, high := make([]Point, len(k.Y)), make([]Point, len(k.Y))
		for i := range k.Y {
			x := k.x(i)
			low[i], high[i] = at(x, max(k.Low[i], p.Low)), at(x, min(k.High[i], p.High))
		}
		c.Band(low, high, k.Colour, 0.22)
	}
	for _, k := range p.Curves {
		points := make([]Point, len(k.Y))
		for i, y := range k.Y {
			points[i] = at(k.x(i), y)
		}
		c.Line(points, 2, k.Colour, k.Dash)
	}
	c.Fill(image.Rect(box.Min.X, box.Max.Y, box.Max.X+1, box.Max.Y+1), Soft)
	c.Text((box.Min.X+box.Max.X)/2, box.Max.Y+34, TextFont, Ink, Center, p.XLabel)
	if p.YLabel != "" {
		c.TextUp(r.Min.X+14, (box.Min.Y+box.Max.Y)/2, TextFont, Ink, p.YLabel)
	}
}

// Ticks returns about n round numbers that span low to high; the first and the last are the limits of the
// plot.
func Ticks(low, high float64, n int) []float64 {
	if !(high > low) {
		pad := max(math.Abs(low)/10, 1e-3)
		low, high = low-pad, high+pad
	}
	raw := (high - low) / float64(n)
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * unit
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*unit >= raw*(1-1e-9) {
			step = m * unit
			break
		}
	}
	var ticks []float64
	first, last := math.Floor(low/step+1e-9), math.Ceil(high/step-1e-9)
	for k := first; k <= last; k++ {
		ticks = append(ticks, k*step)
	}
	return ticks
}

// TickText formats a tick with as many decimals as the step between ticks needs.
func TickText(t float64, ticks []float64) string {
	digits := 0
	if len(ticks) > 1 {
		step := ticks[1] - ticks[0]
		for digits < 12 && math.Abs(step-math.Round(step)) > 1e-6*math.Abs(step) {
			step *= 10
			digits++
		}
	}
	if math.Abs(t) < 1e-12 {
		t = 0
	}
	s := strconv.FormatFloat(t, 'f', digits, 64)
	if s[0] == '-' {
		s = "−" + s[1:]
	}
	return s
}

// A Key is an entry of a legend.
type Key struct {
	Name   string
	Colour color.RGBA
	Dash   []float64
}

const keyLine = 22 // length of the line sample

// Legend draws keys in rows from (x, y), at most width wide, and returns its height. If the canvas c is nil
// it only measures, with m.
func Legend(m, c *Canvas, x, y, width int, keys []Key) int {
	const line = 18
	cell := 0
	for _, k := range keys {
		cell = max(cell, keyLine+8+m.Width(TextFont, k.Name)+18)
	}
	columns := max(1, width/max(cell, 1))
	for i, k := range keys {
		if c == nil {
			break
		}
		kx, ky := x+i%columns*cell, y+i/columns*line
		c.Line([]Point{{float64(kx), float64(ky) + 9}, {float64(kx + keyLine), float64(ky) + 9}}, 2.5,
			k.Colour, k.Dash)
		c.Text(kx+keyLine+8, ky+13, TextFont, Ink, Left, k.Name)
	}
	return (len(keys) + columns - 1) / columns * line
}
