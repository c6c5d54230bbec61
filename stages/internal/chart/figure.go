package chart

import (
	"image/color"
	"math"
	"strings"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A Figure is a drawing of Width × Height points (1/72 inch) on white ground. Its axes, ticks, boxes, error
// bars and legends are those of gonum.org/v1/plot, whose fonts are embedded.
type Figure struct {
	Width, Height vg.Length
	draw          func(draw.Canvas)
}

// SVG returns the figure as an SVG file: text as text, with the width that it has in the embedded font, and
// nothing that runs or is loaded.
func (f Figure) SVG() []byte {
	c := newSVG(f.Width, f.Height)
	f.draw(draw.NewCanvas(c, f.Width, f.Height))
	return c.bytes()
}

// PDF returns the figure as a PDF file of one page: text as text, in fonts that it embeds.
func (f Figure) PDF() []byte {
	c := newPDF(f.Width, f.Height)
	f.draw(draw.NewCanvas(c, f.Width, f.Height))
	return c.bytes()
}

// pngPixels is the number of pixels of a PNG file above which it has less than two pixels per point.
const pngPixels = 900_000

// PNG returns the figure as a PNG file with two pixels per point, large ones with one and a half or one.
func (f Figure) PNG() []byte {
	for _, dpi := range []int{144, 108} {
		if scale := vg.Length(dpi) / 72; scale*scale*f.Width*f.Height <= pngPixels {
			return f.PNGAt(dpi)
		}
	}
	return f.PNGAt(72)
}

// PNGAt returns the figure as a PNG file with so many pixels per inch: in all colours if it has an image,
// otherwise in 256.
func (f Figure) PNGAt(dpi int) []byte {
	c := newPixels(f, dpi)
	f.draw(draw.NewCanvas(c, f.Width, f.Height))
	if c.images {
		return allColours(c.img)
	}
	return fewColours(c.img, Lines())
}

// Sizes in points.
const (
	labelSize = 9
	titleSize = 10
	border    = 12 // around a figure
	lineWidth = 1.5
)

const (
	quarter    = math.Pi / 2
	boldWeight = stdfont.WeightBold
)

// words is the style of text.
func words(size vg.Length) text.Style {
	return text.Style{Color: Ink, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size},
		YAlign: text.YCenter, Handler: plot.DefaultTextHandler}
}

func bold(size vg.Length) text.Style {
	s := words(size)
	s.Font.Weight = boldWeight
	return s
}

// newPlot returns an empty plot in the style of all figures.
func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.Title.Text = title
	p.Title.TextStyle = bold(titleSize)
	p.Title.TextStyle.XAlign, p.Title.TextStyle.YAlign = text.XCenter, text.YTop
	p.Title.Padding = 6
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		label, tick := a.Label.TextStyle, a.Tick.Label
		a.Label.TextStyle, a.Tick.Label = words(labelSize), words(labelSize)
		a.Label.TextStyle.XAlign, a.Label.TextStyle.YAlign = label.XAlign, label.YAlign
		a.Label.TextStyle.Rotation = label.Rotation
		a.Tick.Label.XAlign, a.Tick.Label.YAlign = tick.XAlign, tick.YAlign
		a.Color, a.Tick.Color, a.Label.Padding = Soft, Soft, 3
	}
	return p
}

// nominal returns the ticks of an axis of names: at 0, 1, ….
func nominal(names []string) plot.ConstantTicks {
	ticks := make([]plot.Tick, len(names))
	for i, name := range names {
		ticks[i] = plot.Tick{Value: float64(i), Label: oneLine(name)}
	}
	return ticks
}

// name gives an axis names, without tick marks. Names on the x-axis stand upright if one is wider than room.
func name(p *plot.Plot, a *plot.Axis, names []string, room vg.Length) {
	a.Min, a.Max = -0.5, float64(len(names))-0.5
	a.Tick.Marker, a.Tick.Length, a.Padding = nominal(names), 0, 0
	for _, n := range names {
		if a == &p.X && width(a.Tick.Label, n) > room-4 {
			a.Tick.Label.Rotation = quarter
			a.Tick.Label.XAlign, a.Tick.Label.YAlign = text.XRight, text.YCenter
			a.Tick.Length, a.Tick.LineStyle.Color = 6, color.Transparent // keeps names off the axis
		}
	}
}

// oneLine replaces control characters, which no line of text has.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

func width(s text.Style, line string) vg.Length { return s.Rectangle(oneLine(line)).Size().X }

// wrap breaks a text at spaces into lines of at most room; a longer word stays whole.
func wrap(s text.Style, txt string, room vg.Length) string {
	var lines []string
	for _, word := range strings.Fields(oneLine(txt)) {
		if last := len(lines) - 1; last >= 0 && width(s, lines[last]+" "+word) <= room {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return strings.Join(lines, "\n")
}

// newLegend returns a legend in one column, below the upper edge.
func newLegend() *plot.Legend {
	l := plot.NewLegend()
	style := l.TextStyle
	l.TextStyle = words(labelSize)
	l.TextStyle.XAlign, l.TextStyle.YAlign = style.XAlign, style.YAlign
	l.Top, l.Left, l.Padding, l.ThumbnailWidth = true, true, 4, 18
	return &l
}

// level draws a horizontal line across a plot.
type level struct {
	at    float64
	style draw.LineStyle
	up    bool // a vertical line instead
}

func (l level) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	if l.up {
		c.StrokeLine2(l.style, x(l.at), c.Min.Y, x(l.at), c.Max.Y)
		return
	}
	c.StrokeLine2(l.style, c.Min.X, y(l.at), c.Max.X, y(l.at))
}

// gridLines returns the lines of a plot's background.
func gridLines(vertical bool) *plotter.Grid {
	g := plotter.NewGrid()
	g.Horizontal = draw.LineStyle{Color: Rule, Width: 0.5}
	g.Vertical = g.Horizontal
	if vertical {
		g.Horizontal.Color = nil
	} else {
		g.Vertical.Color = nil
	}
	return g
}

// ticks are round numbers, with as many decimals as their distance needs.
func ticks(values []float64) plot.ConstantTicks {
	t := make([]plot.Tick, len(values))
	for i, v := range values {
		t[i] = plot.Tick{Value: v, Label: TickText(v, values)}
	}
	return t
}
