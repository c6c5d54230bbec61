// Package picture decodes image files (decode.go, jpeg*.go, webp.go, tiff.go), of 16-bit channels too
// (deep.go), and masks (indices.go), recognises other files (kind.go), applies their orientation (exif.go),
// resizes (resize.go) and crops them for a network. Its pixels are bit-identical to those of the tools with
// which vision networks are trained and evaluated: libjpeg's chroma upsampling, libwebp's colours, Pillow's
// resampling. Other arithmetic changes a network's top-1 accuracy.
package picture

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// An RGB is an image of interleaved 8-bit red, green and blue.
type RGB struct {
	W, H int
	Pix  []uint8 // 3·W·H values
}

// NewRGB returns a black image.
func NewRGB(w, h int) *RGB { return &RGB{W: w, H: h, Pix: make([]uint8, 3*w*h)} }

// Planes returns the pixels as three planes, [3,H,W], as on ports of type Images.
func (m *RGB) Planes() []uint8 {
	n := m.W * m.H
	out := make([]uint8, 3*n)
	for i := range n {
		out[i], out[n+i], out[2*n+i] = m.Pix[3*i], m.Pix[3*i+1], m.Pix[3*i+2]
	}
	return out
}

// FromPlanes is the inverse of [RGB.Planes].
func FromPlanes(planes []uint8, w, h int) *RGB {
	m, n := NewRGB(w, h), w*h
	for i := range n {
		m.Pix[3*i], m.Pix[3*i+1], m.Pix[3*i+2] = planes[i], planes[n+i], planes[2*n+i]
	}
	return m
}

// Crop returns the central w×h pixels. Odd margins are split as by torchvision's CenterCrop, which rounds
// half to even.
func (m *RGB) Crop(w, h int) (*RGB, error) {
	if w > m.W || h > m.H {
		return nil, fmt.Errorf("an image of %d×%d pixels is smaller than the crop of %d×%d", m.W, m.H, w, h)
	}
	x0, y0 := Margin(m.W, w), Margin(m.H, h)
	out := NewRGB(w, h)
	for y := range h {
		from := 3 * ((y0+y)*m.W + x0)
		copy(out.Pix[3*y*w:3*(y+1)*w], m.Pix[from:from+3*w])
	}
	return out, nil
}

// Margin returns how many of a side's pixels lie before a centre crop.
func Margin(side, crop int) int { return int(math.RoundToEven(float64(side-crop) / 2)) }

// A Size is a height and a width in pixels, written "224" if they are equal, otherwise "240x320", height
// first. The zero Size means none.
type Size struct{ H, W int }

// Square returns the size of a square.
func Square(side int) Size { return Size{side, side} }

// MaxSide is the longest side of a [Size].
const MaxSide = 1 << 14

// IsZero reports whether s is none.
func (s Size) IsZero() bool { return s == Size{} }

// MarshalText formats s as in an experiment file.
func (s Size) MarshalText() ([]byte, error) {
	switch {
	case s.IsZero():
		return []byte("none"), nil
	case s.H == s.W:
		return strconv.AppendInt(nil, int64(s.H), 10), nil
	}
	return fmt.Appendf(nil, "%dx%d", s.H, s.W), nil
}

// String formats s as [Size.MarshalText] does.
func (s Size) String() string {
	b, _ := s.MarshalText()
	return string(b)
}

// UnmarshalText parses "none", "224", "240x320" or "[240, 320]".
func (s *Size) UnmarshalText(b []byte) error {
	text := string(b)
	if text == "none" || text == "" {
		*s = Size{}
		return nil
	}
	if inner, ok := strings.CutPrefix(text,
		"["); ok && strings.HasSuffix(inner, "]") && strings.Count(inner, ",") == 1 {
		text = strings.ReplaceAll(strings.ReplaceAll(strings.TrimSuffix(inner, "]"), ",", "x"), " ", "")
	}
	h, w, two := strings.Cut(text, "x")
	if !two {
		w = h
	}
	var err1, err2 error
	s.H, err1 = strconv.Atoi(h)
	s.W, err2 = strconv.Atoi(w)
	if err1 != nil || err2 != nil || s.H < 1 || s.W < 1 || s.H > MaxSide || s.W > MaxSide {
		return fmt.Errorf("%q isn't a size: expected one number for a square, height and width as "+
			"240x320 or [240, 320], or none; a side has 1 to %d pixels", b, MaxSide)
	}
	return nil
}
