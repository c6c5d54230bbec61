package chart

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTicks(t *testing.T) {
	for _, tc := range []struct {
		low, high float64
		want      []string
	}{
		{0, 1, []string{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}},
		{0.02, 0.97, []string{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}},
		{-3, 11, []string{"−5", "0", "5", "10", "15"}},
		{0.5, 0.5, []string{"0.44", "0.46", "0.48", "0.50", "0.52", "0.54", "0.56"}},
		{1000, 2200, []string{"1000", "1250", "1500", "1750", "2000", "2250"}},
	} {
		ticks := Ticks(tc.low, tc.high, 5)
		var got []string
		for _, v := range ticks {
			got = append(got, TickText(v, ticks))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%g to %g: %s", tc.low, tc.high, diff)
		}
		if ticks[0] > tc.low || ticks[len(ticks)-1] < tc.high {
			t.Errorf("%g to %g isn't inside %v", tc.low, tc.high, ticks)
		}
	}
}

// TestColourMaps checks that both ends of a signed map are equally dark, and that darkness increases with the
// distance from 0.
func TestColourMaps(t *testing.T) {
	luma := func(c color.RGBA) float64 { return 0.299*float64(c.R) + 0.587*float64(c.G) + 0.114*float64(c.B) }
	seq, div := Sequential(), Diverging()
	if seq.At(0) != White || div.At(0) != White {
		t.Error("zero isn't white")
	}
	for i := range 100 {
		a, b := float64(i)/100, float64(i+1)/100
		if luma(seq.At(b)) >= luma(seq.At(a)) || luma(div.At(b)) >= luma(div.At(a)) ||
			luma(div.At(-b)) >= luma(div.At(-a)) {
			t.Fatalf("it doesn't get darker from %g to %g", a, b)
		}
		if d := luma(div.At(a)) - luma(div.At(-a)); !(math.Abs(d) <= 14) {
			t.Errorf("at ±%g the sides differ by %.0f in brightness", a, d)
		}
	}
	if seq.At(7) != seq.At(1) || div.At(-7) != div.At(-1) {
		t.Error("values outside the range don't have the colour of its end")
	}
}

func TestPNGKeepsColours(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 40, 40))
	keep := color.RGBA{1, 2, 3, 255}
	for i := range 1600 { // 1,600 colours, still more than 256 after rounding
		img.SetRGBA(i%40, i/40, color.RGBA{uint8(i % 40 * 6), uint8(i / 40 * 6), uint8(i % 7 * 30), 255})
	}
	img.SetRGBA(5, 5, keep)
	b := fewColours(img, []color.RGBA{keep})
	m, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	p, ok := m.(*image.Paletted)
	if !ok || len(p.Palette) != 256 {
		t.Fatalf("a %T", m)
	}
	if got := p.At(5, 5); got != color.Color(keep) {
		t.Errorf("a colour to keep became %v", got)
	}
	if !bytes.Equal(b, fewColours(img, []color.RGBA{keep})) {
		t.Error("written twice, the file differs")
	}
}

// TestAllColours checks that all colours stay, whichever filter makes the smallest file.
func TestAllColours(t *testing.T) {
	for _, smooth := range []bool{false, true} {
		img := image.NewRGBA(image.Rect(0, 0, 40, 40))
		for i := range 1600 {
			v := uint8(i % 40 * 6)
			if !smooth {
				v = uint8(i * i % 251)
			}
			img.SetRGBA(i%40, i/40, color.RGBA{v, uint8(i / 40 * 6), 255 - v, 255})
		}
		b := allColours(img)
		m, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1600 {
			if got := color.RGBAModel.Convert(m.At(i%40, i/40)); got != img.At(i%40, i/40) {
				t.Fatalf("smooth %v: pixel %d became %v", smooth, i, got)
			}
		}
		if smooth && len(b) > 300 {
			t.Errorf("a gradient takes %d bytes", len(b))
		}
	}
}

func TestWrap(t *testing.T) {
	for text, want := range map[string][]string{
		"integrated-gradients":      {"integrated-", "gradients"},
		"lrp":                       {"lrp"},
		"":                          nil,
		"p = 0.500 and more":        {"p = 0.500 and", "more"},
		"Donaudampfschifffahrtsamt": {"Donaudampfsc", "hifffahrtsamt"},
		"a b\x00c\u202ed\xff":       {"a b\ufffdc\ufffdd\ufffd"},
		"one-word two-words three-words four-words five": {"one-word two-", "words three-", "words four-…"},
	} {
		got := TitleFont.Wrap(text, 52, 3)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
		for _, line := range got {
			if w := TitleFont.Width(line); w > 52 {
				t.Errorf("%q takes %v points", line, w)
			}
		}
	}
	if got := TextFont.Wrap("WW", 1, 4); len(got) != 2 {
		t.Errorf("in a narrow place the lines are %q", got)
	}
}
