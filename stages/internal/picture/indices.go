package picture

import (
	"bytes"
	"errors"
	"image"
	"image/png"
)

// DecodeIndices reads a PNG file whose pixels are numbers, such as a mask: the indices of a palette, or the
// largest of the colours of a pixel without one, up to 255. All channels of the result are equal. The alpha
// channel doesn't count.
func DecodeIndices(b []byte) (*RGB, error) {
	f, err := recognise(b)
	if err != nil {
		return nil, err
	}
	if f.name != "PNG" {
		return nil, errors.New("a " + f.name + " file: masks are PNG files, whose pixels are exact")
	}
	if err := f.fits(b); err != nil {
		return nil, err
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, damaged(f.name, err)
	}
	r := img.Bounds()
	m := NewRGB(r.Dx(), r.Dy())
	for i := range m.W * m.H {
		v := indexAt(img, r.Min.X+i%m.W, r.Min.Y+i/m.W)
		m.Pix[3*i], m.Pix[3*i+1], m.Pix[3*i+2] = v, v, v
	}
	return m, nil
}

func indexAt(img image.Image, x, y int) uint8 {
	switch img := img.(type) {
	case *image.Paletted:
		return img.ColorIndexAt(x, y)
	case *image.Gray:
		return img.GrayAt(x, y).Y
	case *image.Gray16:
		return uint8(min(img.Gray16At(x, y).Y, 255))
	case *image.NRGBA:
		c := img.NRGBAAt(x, y)
		return max(c.R, c.G, c.B)
	case *image.NRGBA64:
		c := img.NRGBA64At(x, y)
		return uint8(min(max(c.R, c.G, c.B), 255))
	}
	r, g, b, _ := img.At(x, y).RGBA()
	return uint8(max(r, g, b) >> 8)
}
