// Package chart draws figures. Plots have axes, boxes, error bars and legends of gonum.org/v1/plot: layout.go
// has their arrangement, ticks.go round numbers, simplify.go lines of fewer points, and curves.go,
// heatmap.go, boxes.go, intervals.go and ranks.go a kind each. Photographs and maps are placed on a page
// (page.go), with colour maps (colour.go), as images that keep their own pixels (raster.go), and words of any
// script (run.go). A figure (figure.go) has one drawing and three files: svg.go is the SVG, pdf.go the PDF
// with fonts of pdf_font.go, pen.go what both have in common, and png.go the PNG. Figures are byte-identical
// on all machines of an architecture: fonts are embedded, shapes are drawn in a fixed order, and colours and
// coordinates are rounded.
package chart

import (
	"image/color"
	"math"
	"strings"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// The greys of all figures.
var (
	White = color.RGBA{255, 255, 255, 255}
	Ink   = color.RGBA{38, 38, 38, 255}
	Soft  = color.RGBA{110, 110, 110, 255}
	Rule  = color.RGBA{222, 222, 222, 255}
)

// The fonts of pages.
var (
	TextFont  = Font{Size: 7}
	TitleFont = Font{Size: 7, Bold: true}
	SmallFont = Font{Size: 6.5}
)

// A Font is the typeface of all figures in a size in points, regular or bold.
type Font struct {
	Size float64
	Bold bool
}

func (f Font) face() font.Face {
	s := words(vg.Length(f.Size))
	if f.Bold {
		s = bold(vg.Length(f.Size))
	}
	return plot.DefaultTextHandler.(text.Plain).Fonts.Lookup(s.Font, s.Font.Size)
}

// Width returns the width of a line of text in points.
func (f Font) Width(line string) float64 {
	face := f.face()
	return float64(face.Width(oneLine(line)))
}

// longest is the number of characters of a text that Wrap looks at: more than any place has room for.
const longest = 1000

// Wrap breaks a text into at most n lines of at most width points: behind spaces and punctuation, or anywhere
// in a longer word. What is cut ends in "…". Characters that can't be printed are shown as "\ufffd".
func (f Font) Wrap(text string, width float64, n int) []string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(text, "\ufffd"))
	var lines []string
	rest := []rune(text)
	if len(rest) > longest {
		rest = append(rest[:longest], '…')
	}
	for len(rest) > 0 {
		if len(lines) == n {
			last := []rune(lines[n-1])
			for len(last) > 0 && f.Width(string(last)+"…") > width {
				last = last[:len(last)-1]
			}
			lines[n-1] = string(last) + "…"
			break
		}
		end, broken := 0, 0
		for end < len(rest) && f.Width(strings.TrimRight(string(rest[:end+1]), " ")) <= width {
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

// A Point is a position in a plot.
type Point struct{ X, Y float64 }

func finite(p Point) bool {
	return !math.IsNaN(p.X) && !math.IsNaN(p.Y) && !math.IsInf(p.X, 0) && !math.IsInf(p.Y, 0)
}
