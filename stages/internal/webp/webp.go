// Package webp measures images by the size of their lossless WebP form, with libwebp itself: other encoders
// make files of other sizes.
package webp

import (
	"errors"
	"image"

	"github.com/chai2010/webp"

	"github.com/runexp/runexp/stages/internal/picture"
)

// Version is the release of libwebp that encodes. Another one encodes some images in other sizes.
const Version = "1.4.0"

// MaxSide is the largest side that WebP can hold.
const MaxSide = 1<<14 - 1

// Size returns the bytes of an image in lossless WebP at quality 100, with libwebp's other defaults (method
// 4, exact off): the size of the file that Pillow writes with lossless=True and quality=100.
func Size(m *picture.RGB) (int, error) {
	if m.W < 1 || m.H < 1 || m.W > MaxSide || m.H > MaxSide {
		return 0, errors.New("WebP holds images of 1 to 16383 pixels a side")
	}
	b, err := webp.EncodeLosslessRGBA(opaque(m))
	return len(b), err
}

func opaque(m *picture.RGB) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, m.W, m.H))
	for i := range m.W * m.H {
		copy(out.Pix[4*i:], m.Pix[3*i:3*i+3])
		out.Pix[4*i+3] = 0xff
	}
	return out
}
