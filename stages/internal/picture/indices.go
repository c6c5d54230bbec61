package picture

import (
	"bytes"
	"errors"
	"image"
	"image/png"
)

// Indices are the pixels of a picture of numbers, such as a mask, row by row.
type Indices struct {
	W, H  int
	Pix   []uint16
	Alpha []uint16 // nil for a picture without an alpha channel, or one that is the same everywhere

	Palette bool // the numbers are indices of a palette
}

// DecodeIndices reads a PNG file whose pixels are numbers: the indices of a palette, the numbers of grey
// pixels as the file has them, or the largest of the colours of a pixel.
func DecodeIndices(b []byte) (m *Indices, err error) {
	f, err := recognise(b)
	if err != nil {
		return nil, err
	}
	if f.name != "PNG" {
		return nil, errors.New("a " + f.name +
			" file: numbers of pixels are read from PNG files, whose pixels are exact")
	}
	err = f.guarded(b, func() error {
		img, err := png.Decode(bytes.NewReader(b))
		if err == nil {
			m = indicesOf(img, int(b[24]))
		}
		return err
	})
	return m, err
}

// indicesOf returns the numbers of a picture whose file has so many bits a channel.
func indicesOf(img image.Image, depth int) *Indices {
	r := img.Bounds()
	m := &Indices{W: r.Dx(), H: r.Dy()}
	m.Pix = make([]uint16, m.W*m.H)
	_, m.Palette = img.(*image.Paletted)
	alpha := make([]uint16, m.W*m.H)
	at := indexAt(img, depth)
	varies := false
	for i := range m.Pix {
		m.Pix[i], alpha[i] = at(r.Min.X+i%m.W, r.Min.Y+i/m.W)
		varies = varies || alpha[i] != alpha[0]
	}
	if varies {
		m.Alpha = alpha
	}
	return m
}

// indexAt returns a function for the number and the alpha of a pixel.
func indexAt(img image.Image, depth int) func(x, y int) (v, alpha uint16) {
	switch img := img.(type) {
	case *image.Paletted:
		return func(x, y int) (uint16, uint16) { return uint16(img.ColorIndexAt(x, y)), 0 }
	case *image.Gray:
		step := uint16(1) // by which the decoder spreads pixels of less than 8 bits
		if depth < 8 {
			step = 255 / (1<<depth - 1)
		}
		return func(x, y int) (uint16, uint16) { return uint16(img.GrayAt(x, y).Y) / step, 0 }
	case *image.Gray16:
		return func(x, y int) (uint16, uint16) { return img.Gray16At(x, y).Y, 0 }
	case *image.NRGBA:
		return func(x, y int) (uint16, uint16) {
			c := img.NRGBAAt(x, y)
			return uint16(max(c.R, c.G, c.B)), uint16(c.A)
		}
	case *image.NRGBA64:
		return func(x, y int) (uint16, uint16) {
			c := img.NRGBA64At(x, y)
			return max(c.R, c.G, c.B), c.A
		}
	case *image.RGBA64:
		return func(x, y int) (uint16, uint16) {
			c := img.RGBA64At(x, y)
			return max(c.R, c.G, c.B), c.A
		}
	}
	return func(x, y int) (uint16, uint16) {
		r, g, b, _ := img.At(x, y).RGBA()
		return uint16(max(r, g, b) >> 8), 0
	}
}
