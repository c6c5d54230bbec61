// Package annotation reads the positions of objects in photographs: COCO's annotations (coco.go), whose
// regions are polygons (polygon.go) or run lengths (rle.go), and those of PASCAL VOC and ImageNet (voc.go).
// Masks are bit-identical to those of pycocotools. Files are untrusted: reading one takes memory and time
// in proportion to its size and that of the image.
package annotation

import (
	"fmt"
	"math"
)

// MaxPixels is the size of the largest image in which a region is drawn.
const MaxPixels = 1 << 26

// A Mask is a region of an image, column by column as COCO has it: pixel (x, y) is Pix[x·H+y].
type Mask struct {
	W, H int
	Pix  []uint8 // 0 or 1
}

// NewMask returns an empty region of an image.
func NewMask(w, h int) (*Mask, error) {
	if w < 1 || h < 1 || w > MaxPixels/h {
		return nil, fmt.Errorf("an image of %d×%d pixels: a region needs an image of 1 to %d", w, h,
			MaxPixels)
	}
	return &Mask{W: w, H: h, Pix: make([]uint8, w*h)}, nil
}

// add adds a region in run lengths: the number of pixels outside, inside, outside …, column by column.
// Pixels after the last run are outside.
func (m *Mask) add(runs []uint32) error {
	at := 0
	for i, n := range runs {
		if int64(n) > int64(len(m.Pix)-at) {
			return fmt.Errorf("run %d of %d pixels ends behind the last of %d×%d pixels", i, n, m.W, m.H)
		}
		if i%2 == 1 {
			for k := range int(n) {
				m.Pix[at+k] = 1
			}
		}
		at += int(n)
	}
	return nil
}

// Rows returns the mask row by row.
func (m *Mask) Rows() []uint8 {
	out := make([]uint8, len(m.Pix))
	for x := range m.W {
		for y := range m.H {
			out[y*m.W+x] = m.Pix[x*m.H+y]
		}
	}
	return out
}

// A Box has its edges in pixels, from the upper left corner of the image.
type Box struct{ Left, Top, Right, Bottom float64 }

// Area returns the box's area in pixels.
func (b Box) Area() float64 { return (b.Right - b.Left) * (b.Bottom - b.Top) }

// checked returns an error for edges that don't form a box.
func (b Box) checked() (Box, error) {
	for _, x := range []float64{b.Left, b.Top, b.Right, b.Bottom} {
		if math.IsNaN(x) || math.Abs(x) > maxCoordinate {
			return b, fmt.Errorf("a box with an edge at %v", x)
		}
	}
	if b.Right < b.Left || b.Bottom < b.Top {
		return b, fmt.Errorf("a box from (%v, %v) to (%v, %v) has no inside", b.Left, b.Top, b.Right,
			b.Bottom)
	}
	return b, nil
}

// maxCoordinate limits coordinates, in pixels.
const maxCoordinate = 1 << 20
