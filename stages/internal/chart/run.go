package chart

import (
	"fmt"
	"html"
	"image/color"
	"strings"
	"unicode"

	"golang.org/x/image/font/sfnt"
	eastasian "golang.org/x/text/width"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/runexp/runexp/stages/spans"
)

// Highlight is the colour map of words: that of maps without its darkest ends.
func Highlight() ColourMap {
	all := Diverging().stops
	return ColourMap{Signed: true, stops: all[1 : len(all)-1]}
}

// Lacks returns the number of characters that the embedded font has no glyph for. A reader of an SVG file
// sees them in another font; PNG and PDF files have a box in their place.
func (f Font) Lacks(line string) (n int) {
	face, buf := f.face().Face, new(sfnt.Buffer)
	for _, r := range line {
		if g, err := face.GlyphIndex(buf, r); err != nil || g == 0 {
			n++
		}
	}
	return n
}

// Reach returns the width of a line of any script in points: as [Font.Width] does, and by an estimate where
// the embedded font has no glyphs.
func (f Font) Reach(line string) float64 {
	if f.Lacks(line) == 0 {
		return f.Width(line)
	}
	sum, known := 0.0, ""
	for _, r := range line {
		if f.Lacks(string(r)) == 0 {
			known += string(r)
			continue
		}
		sum += f.Size * ems(r)
	}
	return sum + f.Width(known)
}

// ems estimates the advance of a character.
func ems(r rune) float64 {
	switch kind := eastasian.LookupRune(r).Kind(); {
	case unicode.IsMark(r):
		return 0
	case kind == eastasian.EastAsianWide || kind == eastasian.EastAsianFullwidth:
		return 1
	case r >= 0x1f000:
		return 1.2
	case unicode.Is(unicode.Arabic, r):
		return 0.5
	}
	return 0.65
}

// Run writes a text of one direction with the base line y and its left end at x, so that it is as wide as
// [Font.Reach] says.
func (p *Page) Run(x, y float64, f Font, col color.RGBA, rightToLeft bool, line string) {
	line = oneLine(line)
	if !rightToLeft && f.Lacks(line) == 0 {
		p.Text(x, y, f, col, Left, line)
		return
	}
	wide := f.Reach(line)
	p.add(func(c draw.Canvas) {
		c.SetColor(col)
		at, face := vg.Point{X: vg.Length(x), Y: vg.Length(p.Height - y)}, f.face()
		if s, ok := c.Canvas.(*svg); ok {
			s.fitString(face, at, line, wide, rightToLeft)
			return
		}
		seen := line
		if rightToLeft {
			seen = visual(line)
		}
		if _, ok := c.Canvas.(*pixels); ok {
			seen = f.boxed(seen)
		}
		if drawn := f.Width(seen); drawn > wide { // boxes are wider than the characters that they stand for
			face = Font{Size: f.Size * wide / drawn, Bold: f.Bold}.face()
		}
		c.FillString(face, at, seen)
	})
}

// boxed returns a line with boxes for the characters that the font has no glyph for, which a raster would
// leave out. A PDF has the font's own boxes, and keeps the characters for copying.
func (f Font) boxed(line string) string {
	return strings.Map(func(r rune) rune {
		if f.Lacks(string(r)) == 0 {
			return r
		}
		if unicode.IsMark(r) {
			return -1
		}
		return '□'
	}, line)
}

// fitString writes a text that may have characters of any font in the given width: its glyphs are stretched,
// which unlike their distance leaves letters joined.
func (c *svg) fitString(f font.Face, p vg.Point, txt string, wide float64, rightToLeft bool) {
	if strings.TrimSpace(txt) == "" {
		return
	}
	c.end()
	x, y := c.at(p)
	more := ""
	if rightToLeft { // x is where the text begins
		x += wide
		more = ` direction="rtl" unicode-bidi="embed"`
	}
	if size := decimal(float64(f.Font.Size)); size != decimal(labelSize) {
		more += ` font-size="` + size + `"`
	}
	if f.Font.Weight == boldWeight {
		more += ` font-weight="bold"`
	}
	if ink, _ := paint(c.state.colour); ink != inkHex {
		more += ` fill="` + ink + `"`
	}
	fmt.Fprintf(&c.body,
		`<text x="%s" y="%s" textLength="%s" lengthAdjust="spacingAndGlyphs"%s>%s</text>`+"\n",
		decimal(x), decimal(y), decimal(wide), more, html.EscapeString(txt))
}

// mirrors are the brackets that point the other way in text from right to left.
var mirrors = strings.NewReplacer("(", ")", ")", "(", "[", "]", "]", "[", "{", "}", "}", "{", "<", ">",
	">", "<", "«", "»", "»", "«", "‹", "›", "›", "‹")

// visual returns a text from right to left in the order in which a canvas without directions draws it.
func visual(line string) string {
	list := spans.Clusters(mirrors.Replace(line))
	var b strings.Builder
	for i := len(list) - 1; i >= 0; i-- {
		b.WriteString(list[i])
	}
	return b.String()
}
