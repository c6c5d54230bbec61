package chart

import (
	"bytes"
	"fmt"
	"html"
	"image"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// An svg is a canvas of gonum's plots that writes an SVG file. Other than gonum's own it states the width of
// every text, so that names fit whatever font the reader has, and rounds coordinates to 1/10 point, so that
// machines that differ in the last bits of a number write the same file.
type svg struct {
	pens
	w, h vg.Length
	body bytes.Buffer
	open string // the attributes of a path that isn't closed yet: later ones with the same join it

	images map[string]placed // by size and data
}

func newSVG(w, h vg.Length) *svg {
	c := &svg{w: w, h: h, images: map[string]placed{}}
	c.state.matrix = [6]float64{1, 0, 0, -1, 0, float64(h)} // SVG counts y from the top
	vg.Initialize(c)
	return c
}

func (c *svg) bytes() []byte {
	c.end()
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]s" height="%[2]s" `+
		`viewBox="0 0 %[1]s %[2]s" font-family="Liberation Sans, Arial, Helvetica, sans-serif" `+
		`font-size="9" fill="`+inkHex+`" xml:space="preserve">`+"\n"+
		`<rect width="%[1]s" height="%[2]s" fill="#fff"/>`+"\n", decimal(float64(c.w)), decimal(float64(c.h)))
	return append(append([]byte(head), c.body.Bytes()...), "</svg>\n"...)
}

// DrawImage places an image. One that was there before in the same size is referred to.
func (c *svg) DrawImage(r vg.Rectangle, img image.Image) {
	c.end()
	m := img.(*Raster)
	x, y := c.at(vg.Point{X: r.Min.X, Y: r.Max.Y})
	place := fmt.Sprintf(`width="%s" height="%s"`, decimal(float64(r.Size().X)), decimal(float64(r.Size().Y)))
	url := m.url()
	first, known := c.images[place+url]
	if known {
		fmt.Fprintf(&c.body, `<use href="#%s" x="%s" y="%s"/>`+"\n", first.id, decimal(x-first.x),
			decimal(y-first.y))
		return
	}
	first = placed{fmt.Sprintf("i%d", len(c.images)), x, y}
	c.images[place+url] = first
	sharp := ""
	if m.palette != nil {
		sharp = ` style="image-rendering:pixelated"`
	}
	fmt.Fprintf(&c.body, `<image id="%s" x="%s" y="%s" %s preserveAspectRatio="none"%s href="%s"/>`+"\n",
		first.id, decimal(x), decimal(y), place, sharp, url)
}

// A placed is where an image is for the first time.
type placed struct {
	id   string
	x, y float64
}

func (c *svg) Stroke(p vg.Path) {
	if !c.strokes() {
		return
	}
	paint, opacity := paint(c.state.colour)
	dash := ""
	if len(c.state.dash) > 0 {
		var d []string
		for _, l := range c.state.dash {
			d = append(d, decimal(float64(l)))
		}
		dash = ` stroke-dasharray="` + strings.Join(d, " ") + `"`
	}
	c.add(p, fmt.Sprintf(`fill="none" stroke="%s"%s stroke-width="%s"%s`, paint,
		strings.Replace(opacity, "fill", "stroke", 1), decimal(float64(c.state.width)), dash), opacity == "")
}

func (c *svg) Fill(p vg.Path) {
	paint, opacity := paint(c.state.colour)
	c.add(p, fmt.Sprintf(`fill="%s"%s`, paint, opacity), opacity == "")
}

// add draws a path. Paths that let others shine through aren't joined.
func (c *svg) add(p vg.Path, attributes string, opaque bool) {
	if c.open != attributes || !opaque {
		c.end()
		c.body.WriteString("<path " + attributes + ` d="`)
		c.open = attributes
	}
	c.body.WriteString(c.path(p))
}

func (c *svg) end() {
	if c.open != "" {
		c.body.WriteString("\"/>\n")
		c.open = ""
	}
}

// paint returns a colour without its opacity, and the attribute of the opacity of a filled area.
func paint(col color.Color) (rgb, opacity string) {
	n := color.NRGBAModel.Convert(col).(color.NRGBA)
	if n.A < 255 {
		opacity = fmt.Sprintf(` fill-opacity="%s"`, decimal(float64(n.A)/255))
	}
	return fmt.Sprintf("#%02x%02x%02x", n.R, n.G, n.B), opacity
}

// path returns the data of a path, relative to its last point in tenths, so that rounding doesn't add up.
func (c *svg) path(p vg.Path) string {
	d := svgPath{at: c.at}
	for i, s := range p {
		switch s.Type {
		case vg.MoveComp:
			d.move(s.Pos)
		case vg.LineComp:
			d.line(s.Pos)
		case vg.CurveComp:
			d.curve(s)
		case vg.ArcComp:
			if start := onArc(s, s.Start); i == 0 {
				d.move(start)
			} else {
				d.line(start)
			}
			d.arc(s)
		case vg.CloseComp:
			d.close()
		}
	}
	return d.b.String()
}

// An svgPath is the data of a path so far.
type svgPath struct {
	b              strings.Builder
	at             func(p vg.Point) (x, y float64)
	x, y           int  // the last point
	startX, startY int  // the point that the last move went to
	follows        bool // numbers come last, from which a sign or a space separates another
	lines          bool // these belong to a line that has both
}

func (d *svgPath) command(s string) {
	d.b.WriteString(s)
	d.follows, d.lines = false, s == "l"
}

func (d *svgPath) numbers(ns ...int) {
	for _, n := range ns {
		s := tenths(n)
		if d.follows && s[0] != '-' {
			d.b.WriteString(" ")
		}
		d.b.WriteString(s)
		d.follows = true
	}
}

// to returns the way to a point.
func (d *svgPath) to(p vg.Point) (dx, dy int) {
	x, y := d.at(p)
	return tenth(x) - d.x, tenth(y) - d.y
}

func (d *svgPath) move(p vg.Point) {
	dx, dy := d.to(p)
	d.x, d.y = d.x+dx, d.y+dy
	d.startX, d.startY = d.x, d.y
	d.command("M")
	d.numbers(d.x, d.y)
}

func (d *svgPath) line(p vg.Point) {
	dx, dy := d.to(p)
	d.x, d.y = d.x+dx, d.y+dy
	switch {
	case dx == 0 && dy != 0:
		d.command("v")
		d.numbers(dy)
	case dy == 0:
		d.command("h")
		d.numbers(dx)
	default:
		if !d.lines {
			d.command("l")
		}
		d.numbers(dx, dy)
	}
}

func (d *svgPath) curve(s vg.PathComp) {
	d.command([]string{"q", "c"}[len(s.Control)-1])
	var dx, dy int
	for _, p := range append(slices.Clone(s.Control), s.Pos) {
		dx, dy = d.to(p)
		d.numbers(dx, dy)
	}
	d.x, d.y = d.x+dx, d.y+dy
}

// arc draws an arc in halves, since one can't end where it begins. SVG's y points down.
func (d *svgPath) arc(s vg.PathComp) {
	r, sweep := tenth(float64(s.Radius)), 0
	if s.Angle < 0 {
		sweep = 10
	}
	for _, part := range []float64{0.5, 1} {
		dx, dy := d.to(onArc(s, s.Start+part*s.Angle))
		d.command("a")
		d.numbers(r, r, 0, 0, sweep, dx, dy)
		d.x, d.y = d.x+dx, d.y+dy
	}
}

func (d *svgPath) close() {
	d.command("z")
	d.x, d.y = d.startX, d.startY
}

func (c *svg) FillString(f font.Face, p vg.Point, txt string) {
	if txt == "" || f.Font.Size <= 0 {
		return
	}
	c.end()
	x, y := c.at(p)
	paint, opacity := paint(c.state.colour)
	if size := decimal(float64(f.Font.Size)); size != decimal(labelSize) {
		opacity += ` font-size="` + size + `"`
	}
	if f.Font.Weight == boldWeight {
		opacity += ` font-weight="bold"`
	}
	if turn := c.angle(); math.Abs(turn) > 1e-9 {
		opacity += fmt.Sprintf(` transform="rotate(%s %s %s)"`, decimal(turn*180/math.Pi),
			decimal(x), decimal(y))
	}
	if paint == inkHex {
		paint = ""
	} else {
		paint = ` fill="` + paint + `"`
	}
	fmt.Fprintf(&c.body, `<text x="%s" y="%s" textLength="%s"%s%s>%s</text>`+"\n", decimal(x), decimal(y),
		decimal(float64(f.Width(txt))), paint, opacity, html.EscapeString(txt))
}

// inkHex is the colour of text unless it has another.
const inkHex = "#262626"

// tenth returns a coordinate in tenths.
func tenth(x float64) int {
	if math.IsNaN(x) || math.Abs(x) > 1e6 {
		return 0
	}
	return int(math.Round(10 * x))
}

func tenths(n int) string { return strconv.FormatFloat(float64(n)/10, 'f', -1, 64) }

// decimal formats a number with at most two decimals.
func decimal(x float64) string { return strconv.FormatFloat(math.Round(100*x)/100+0, 'f', -1, 64) }
