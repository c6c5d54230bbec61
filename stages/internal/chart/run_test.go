package chart

import (
	"bytes"
	"image/png"
	"math"
	"strings"
	"testing"
)

// runOf returns a figure of one text, drawn once already: a drawing must not change the next one.
func runOf(line string, rightToLeft bool) Figure {
	p := &Page{Width: 200, Height: 20}
	p.Run(10, 12, Font{Size: 8}, Ink, rightToLeft, line)
	f := p.Figure()
	f.PNG()
	return f
}

// TestRun checks that an SVG has a text as it was written, with its direction, and a PDF in the order in
// which it is seen, both in the width that the text has been given.
func TestRun(t *testing.T) {
	for _, tc := range []struct {
		name, line, seen string
		rightToLeft      bool
		svg              string
	}{
		{"Latin", "good", "good", false, `<text x="10" y="12" textLength="`},
		{"Hebrew", "טוב (מ)", "(מ) בוט", true,
			` direction="rtl" unicode-bidi="embed" font-size="8">טוב (מ)<`},
		{"points", "שָׁם", "םשָׁ", true, `>שָׁם<`},
		{"Arabic", "جيد", "ديج", true,
			` lengthAdjust="spacingAndGlyphs" direction="rtl" unicode-bidi="embed"`},
		{"Chinese", "电影", "电影", false, ` lengthAdjust="spacingAndGlyphs" font-size="8">电影<`},
	} {
		f := runOf(tc.line, tc.rightToLeft)
		if s := string(f.SVG()); !strings.Contains(s, tc.svg) {
			t.Errorf("%s: the SVG is %s", tc.name, s)
		}
		wide := Font{Size: 8}.Reach(tc.line)
		for _, w := range parsePDF(t, f.PDF()).texts(t) {
			if w.text != tc.seen || math.Abs(w.x-10) > 0.01 || w.wide > wide+0.05 {
				t.Errorf("%s: the PDF has %q at %g of width %g, want %q of %g", tc.name, w.text, w.x, w.wide,
					tc.seen, wide)
			}
		}
	}
	if n := (Font{Size: 8}).Lacks("a电שم"); n != 2 {
		t.Errorf("%d of four letters are lacking, want 2", n)
	}
}

// TestBoxes checks that a PNG shows a box for each character that the font has no glyph for, and none for a
// mark.
func TestBoxes(t *testing.T) {
	for line, want := range map[string]string{"电影 b": "□□ b", "ab": "ab", "aົ": "a"} {
		if got := (Font{Size: 8}).boxed(line); got != want {
			t.Errorf("%q is shown as %q, want %q", line, got, want)
		}
	}
	ink := func(f Figure) (n int) {
		m, err := png.Decode(bytes.NewReader(f.PNG()))
		if err != nil {
			t.Fatal(err)
		}
		for y := range m.Bounds().Dy() {
			for x := range m.Bounds().Dx() {
				if r, _, _, _ := m.At(x, y).RGBA(); r < 0x8000 {
					n++
				}
			}
		}
		return n
	}
	if one, two := ink(runOf("电", false)), ink(runOf("电影", false)); one == 0 || two <= one {
		t.Errorf("a character without a glyph has %d dark pixels, and two have %d", one, two)
	}
}

// TestHighlight checks that colours are darker with the magnitude, equally on both sides, and that text is
// readable on each.
func TestHighlight(t *testing.T) {
	before := [2]float64{256, 256}
	for k := range 101 {
		for side, sign := range []float64{1, -1} {
			c := Highlight().At(sign * float64(k) / 100)
			l := 0.299*float64(c.R) + 0.587*float64(c.G) + 0.114*float64(c.B)
			if k == 0 && c != White || k > 0 && l >= before[side] {
				t.Errorf("%g has the colour %v of luminance %g after %g", sign*float64(k)/100, c, l,
					before[side])
			}
			before[side] = l
			if got := contrastRatio(c, On(c)); got < 3.5 {
				t.Errorf("text on %v has a contrast of %g", c, got)
			}
			if red := c.R > c.B; k > 0 && red != (sign > 0) {
				t.Errorf("%g is %v", sign*float64(k)/100, c)
			}
		}
		if math.Abs(before[0]-before[1]) > 25 {
			t.Errorf("at %d %% the luminances are %v", k, before)
		}
	}
}
