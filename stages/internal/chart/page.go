package chart

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A Page is a figure of texts, areas and images at given places, in points (1/72 inch) from its top left
// corner.
type Page struct {
	Width, Height float64
	parts         []func(c draw.Canvas)
}

// A Rect is an area of a page.
type Rect struct{ X, Y, W, H float64 }

// Inset returns the area without a border of width d on all sides.
func (r Rect) Inset(d float64) Rect { return Rect{r.X + d, r.Y + d, r.W - 2*d, r.H - 2*d} }

// Align is the horizontal alignment of a text to its position.
type Align int

const (
	Left Align = iota
	Center
)

func (p *Page) add(part func(c draw.Canvas)) { p.parts = append(p.parts, part) }

// corners returns an area of the page where y points up.
func (p *Page) corners(r Rect) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: vg.Length(r.X), Y: vg.Length(p.Height - r.Y - r.H)},
		Max: vg.Point{X: vg.Length(r.X + r.W), Y: vg.Length(p.Height - r.Y)}}
}

// Text writes a line of text with the base line y.
func (p *Page) Text(x, y float64, f Font, col color.RGBA, a Align, line string) {
	if line = oneLine(line); a == Center {
		x -= f.Width(line) / 2
	}
	p.add(func(c draw.Canvas) {
		c.SetColor(col)
		c.FillString(f.face(), vg.Point{X: vg.Length(x), Y: vg.Length(p.Height - y)}, line)
	})
}

// Fill fills an area.
func (p *Page) Fill(r Rect, col color.RGBA) {
	p.add(func(c draw.Canvas) {
		c.SetColor(col)
		c.Fill(p.corners(r).Path())
	})
}

// Outline draws the border of an area, inside it.
func (p *Page) Outline(r Rect, width float64, col color.RGBA) {
	p.add(func(c draw.Canvas) {
		c.SetLineStyle(draw.LineStyle{Color: col, Width: vg.Length(width)})
		c.Stroke(p.corners(r.Inset(width / 2)).Path())
	})
}

// Image draws an image.
func (p *Page) Image(r Rect, m *Raster) {
	p.add(func(c draw.Canvas) { c.DrawImage(p.corners(r), m) })
}

// Figure returns the page as a figure. Width and Height must be set.
func (p *Page) Figure() Figure {
	return Figure{Width: vg.Length(p.Width), Height: vg.Length(p.Height), draw: func(c draw.Canvas) {
		for _, part := range p.parts {
			part(c)
		}
	}}
}
