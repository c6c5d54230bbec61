// Package chart draws figures. Plots have axes, boxes, error bars and legends of gonum.org/v1/plot: figure.go
// has their files and arrangement, svg.go the SVG, and heatmap.go, boxes.go, intervals.go and ranks.go a kind
// each. Photographs and maps are drawn on a canvas of pixels (chart.go), curves there too (panel.go), with
// colour maps (colour.go) and PNG files with a palette or in all colours (png.go). Figures are byte-identical
// on all machines of an architecture: fonts are embedded, shapes are drawn in a fixed order, and colours and
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

// blend paints a pixel with an opacity in [0,1].
func (c *Canvas) blend(x, y int, col color.RGBA, alpha float64) {
	if alpha <= 0 || !(image.Point{X: x, Y: y}.In(c.Image.Rect)) {
		return
	}
	a := int(math.Round(255 * min(alpha, 1)))
	p := c.Image.Pix[c.Image.PixOffset(x, y):][:3]
	for i, v := range [3]uint8{col.R, col.G, col.B} {
		p[i] = uint8((int(p[i])*(255-a) + int(v)*a + 127) / 255)
	}
}

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

// TextUp writes a vertical text, upwards, centred on y, with the base line x.
func (c *Canvas) TextUp(x, y int, f Font, col color.RGBA, text string) {
	w, h := c.Width(f, text), 2*f.Size
	t := NewCanvas(w, h)
	t.faces = c.faces
	base := h - f.Size/2
	t.Text(0, base, f, color.RGBA{A: 255}, Left, text)
	for j := range h {
		for i := range w {
			if v := t.Image.RGBAAt(i, j).R; v < 255 {
				c.blend(x+j-base, y+w/2-i, col, float64(255-int(v))/255)
			}
		}
	}
}

// A Point is a position on the canvas; the centre of pixel (i, j) is (i+½, j+½).
type Point struct{ X, Y float64 }

// Line draws a polyline of the given width. dash alternates the lengths of strokes and gaps, nil for a solid
// line. Points that aren't finite interrupt the line.
func (c *Canvas) Line(points []Point, width float64, col color.RGBA, dash []float64) {
	// The opacity of a pixel is the maximum over the segments, so that joints don't show.
	cover := map[image.Point]float64{}
	var order []image.Point
	along := 0.0
	for i := 1; i < len(points); i++ {
		p, q := points[i-1], points[i]
		if !finite(p) || !finite(q) {
			continue
		}
		dx, dy := q.X-p.X, q.Y-p.Y
		length := math.Hypot(dx, dy)
		reach := width/2 + 1
		for y := int(math.Floor(min(p.Y, q.Y) - reach)); y <= int(max(p.Y, q.Y)+reach); y++ {
			for x := int(math.Floor(min(p.X, q.X) - reach)); x <= int(max(p.X, q.X)+reach); x++ {
				px, py := float64(x)+0.5-p.X, float64(y)+0.5-p.Y
				t := 0.0
				if length > 0 {
					t = min(max((float64(px*dx)+float64(py*dy))/float64(length*length), 0), 1)
				}
				far := math.Hypot(px-float64(t*dx), py-float64(t*dy))
				a := min(max(width/2+0.5-far, 0), 1)
				if a > 0 && drawn(along+float64(t*length), dash) {
					at := image.Point{X: x, Y: y}
					if old, ok := cover[at]; !ok {
						order = append(order, at)
						cover[at] = a
					} else if a > old {
						cover[at] = a
					}
				}
			}
		}
		along += length
	}
	for _, at := range order {
		c.blend(at.X, at.Y, col, cover[at])
	}
}

func drawn(at float64, dash []float64) bool {
	period := 0.0
	for _, d := range dash {
		period += d
	}
	if period == 0 {
		return true
	}
	at = math.Mod(at, period)
	for i, d := range dash {
		if at < d {
			return i%2 == 0
		}
		at -= d
	}
	return true
}

func finite(p Point) bool {
	return !math.IsNaN(p.X) && !math.IsNaN(p.Y) && !math.IsInf(p.X, 0) && !math.IsInf(p.Y, 0)
}

// Band fills the area between two lines with equal, ascending X.
func (c *Canvas) Band(low, high []Point, col color.RGBA, alpha float64) {
	if len(low) == 0 {
		return
	}
	i := 1
	for x := int(math.Ceil(low[0].X - 0.5)); float64(x)+0.5 <= low[len(low)-1].X; x++ {
		mid := float64(x) + 0.5
		for i < len(low)-1 && low[i].X < mid {
			i++
		}
		if i >= len(low) || !finite(low[i]) || !finite(low[i-1]) || !finite(high[i]) || !finite(high[i-1]) {
			continue
		}
		t := 0.0
		if d := low[i].X - low[i-1].X; d > 0 {
			t = (mid - low[i-1].X) / d
		}
		bottom := low[i-1].Y + float64(t*(low[i].Y-low[i-1].Y))
		top := high[i-1].Y + float64(t*(high[i].Y-high[i-1].Y))
		for y := int(math.Floor(top)); y <= int(bottom); y++ {
			c.blend(x, y, col, alpha*max(0, min(float64(y)+1, bottom)-max(float64(y), top)))
		}
	}
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
