// Package chart draws figures. Plots have axes, boxes, error bars and legends of gonum.org/v1/plot: figure.go
// has their files, layout.go their arrangement, svg.go the SVG, pdf.go the PDF with fonts of pdf_font.go,
// pen.go what both have in common, ticks.go round numbers, and curves.go, heatmap.go, boxes.go, intervals.go
// and ranks.go a kind each. Photographs and maps are drawn on a canvas of pixels (chart.go), with colour maps
// (colour.go) and PNG files with a palette or in all colours (png.go). Figures are byte-identical on all
// machines of an architecture: fonts are embedded, shapes are drawn in a fixed order, and colours and
// coordinates are rounded.
package chart

import (
	"image"
	"image/color"
	"math"
	"strings"
	"unicode"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"github.com/runexp/runexp/stages/internal/picture"
)

// The greys of all figures.
var (
	White = color.RGBA{255, 255, 255, 255}
	Ink   = color.RGBA{38, 38, 38, 255}
	Soft  = color.RGBA{110, 110, 110, 255}
	Rule  = color.RGBA{222, 222, 222, 255}
)

// A Canvas has pixel coordinates from the top left corner.
type Canvas struct {
	Image *image.RGBA
	faces map[style]font.Face
}

type style struct {
	size int
	bold bool
}

// NewCanvas returns a white canvas.
func NewCanvas(w, h int) *Canvas {
	c := &Canvas{Image: image.NewRGBA(image.Rect(0, 0, w, h)), faces: map[style]font.Face{}}
	c.Fill(c.Image.Rect, White)
	return c
}

// Fill fills a rectangle.
func (c *Canvas) Fill(r image.Rectangle, col color.RGBA) {
	r = r.Intersect(c.Image.Rect)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			c.Image.SetRGBA(x, y, col)
		}
	}
}

// The fonts of figures.
var (
	TextFont  = Font{Size: 12}
	TitleFont = Font{Size: 12, Bold: true}
	SmallFont = Font{Size: 11}
)

// Align is the horizontal alignment of a text to its position.
type Align int

const (
	Left Align = iota
	Center
	Right
)

// A Font is a size in pixels, regular or bold.
type Font struct {
	Size int
	Bold bool
}

func (c *Canvas) face(f Font) font.Face {
	key := style{f.Size, f.Bold}
	if c.faces[key] == nil {
		ttf := goregular.TTF
		if f.Bold {
			ttf = gobold.TTF
		}
		parsed, err := opentype.Parse(ttf)
		if err != nil {
			panic(err) // the fonts are embedded
		}
		face, err := opentype.NewFace(parsed,
			&opentype.FaceOptions{Size: float64(f.Size), DPI: 72, Hinting: font.HintingFull})
		if err != nil {
			panic(err)
		}
		c.faces[key] = face
	}
	return c.faces[key]
}

// Width returns the width of a text in pixels.
func (c *Canvas) Width(f Font, text string) int {
	return font.MeasureString(c.face(f), text).Ceil()
}

// Fit shortens a text in the middle to at most width pixels.
func (c *Canvas) Fit(f Font, text string, width int) string {
	if c.Width(f, text) <= width {
		return text
	}
	r := []rune(text)
	for n := len(r) - 1; n > 1; n-- {
		// The end of a file name is more specific than its start.
		head := n / 3
		short := string(r[:head]) + "…" + string(r[len(r)-(n-head):])
		if c.Width(f, short) <= width {
			return short
		}
	}
	return "…"
}

// Wrap breaks a text into at most n lines of at most width pixels: behind spaces and punctuation, or anywhere
// in a longer word. What is cut ends in "…". Characters that can't be printed are shown as "\ufffd".
func (c *Canvas) Wrap(f Font, text string, width, n int) []string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(text, "\ufffd"))
	var lines []string
	for rest := []rune(text); len(rest) > 0; {
		if len(lines) == n {
			last := []rune(lines[n-1])
			for len(last) > 0 && c.Width(f, string(last)+"…") > width {
				last = last[:len(last)-1]
			}
			lines[n-1] = string(last) + "…"
			break
		}
		end, broken := 0, 0
		for end < len(rest) && c.Width(f, strings.TrimRight(string(rest[:end+1]), " ")) <= width {
			end++
			if strings.ContainsRune(" -_/,:·", rest[end-1]) {
				broken = end
			}
		}
		switch {
		case end == len(rest):
		case broken > 0:
			end = broken
		case end == 0:
			end = 1 // a place narrower than a character
		}
		lines = append(lines, strings.TrimSpace(string(rest[:end])))
		rest = rest[end:]
	}
	return lines
}

// Text writes a text with the base line y.
func (c *Canvas) Text(x, y int, f Font, col color.RGBA, a Align, text string) {
	switch a {
	case Center:
		x -= c.Width(f, text) / 2
	case Right:
		x -= c.Width(f, text)
	}
	d := font.Drawer{Dst: c.Image, Src: image.NewUniform(col), Face: c.face(f), Dot: fixed.P(x, y)}
	d.DrawString(text)
}

// A Point is a position on the canvas; the centre of pixel (i, j) is (i+½, j+½).
type Point struct{ X, Y float64 }

func finite(p Point) bool {
	return !math.IsNaN(p.X) && !math.IsNaN(p.Y) && !math.IsInf(p.X, 0) && !math.IsInf(p.Y, 0)
}

// Outline draws the border of a rectangle, inside it.
func (c *Canvas) Outline(r image.Rectangle, col color.RGBA) {
	c.Fill(image.Rect(r.Min.X, r.Min.Y, r.Max.X, r.Min.Y+1), col)
	c.Fill(image.Rect(r.Min.X, r.Max.Y-1, r.Max.X, r.Max.Y), col)
	c.Fill(image.Rect(r.Min.X, r.Min.Y, r.Min.X+1, r.Max.Y), col)
	c.Fill(image.Rect(r.Max.X-1, r.Min.Y, r.Max.X, r.Max.Y), col)
}

// Photo draws an image with its top left corner at (x, y).
func (c *Canvas) Photo(x, y int, m *picture.RGB) {
	for i := range m.W * m.H {
		c.Image.SetRGBA(x+i%m.W, y+i/m.W, color.RGBA{m.Pix[3*i], m.Pix[3*i+1], m.Pix[3*i+2], 255})
	}
}
