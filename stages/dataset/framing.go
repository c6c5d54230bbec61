package dataset

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/annotation"
	"github.com/runexp/runexp/stages/internal/picture"
)

// A framing is how photographs, their masks and their boxes become images of a model's size.
type framing struct {
	resize     int
	size, crop picture.Size
	exif       bool
	filter     string
	white      int // of 16-bit channels; 0 keeps their high byte
}

// check rejects resize together with size.
func (f framing) check() error {
	if f.resize > 0 && !f.size.IsZero() {
		return stages.BadField("resize",
			"resize and size are mutually exclusive: resize keeps the aspect ratio, size sets it")
	}
	return nil
}

// fixed returns the size of all images, zero if they differ.
func (f framing) fixed() picture.Size {
	if !f.crop.IsZero() {
		return f.crop
	}
	return f.size
}

func (f framing) kernel() picture.Filter {
	if f.filter == "bicubic" {
		return picture.Bicubic()
	}
	return picture.Bilinear()
}

// maxImage limits the size of an image file.
const maxImage = 1 << 28

// decode reads an image file.
func (f framing) decode(file string) (m opened, err error) {
	b, err := stages.ReadFile(file, maxImage)
	if err != nil {
		return m, plain(err)
	}
	if m.RGB, m.above, err = picture.DecodeRange(b, f.white); err != nil {
		return m, err
	}
	m.turn = 1
	if f.exif {
		m.turn = picture.Orientation(b)
	}
	return m, nil
}

// An opened is the content of an image file.
type opened struct {
	*picture.RGB
	turn  int // its EXIF orientation
	above int // number of pixels above white
}

// apply resizes and crops a picture and the boxes in it. Boxes are cut at the edges of the result, and left
// out if they are outside.
func (f framing) apply(m *picture.RGB, filter picture.Filter, boxes []annotation.Box) (_ *picture.RGB,
	inside []annotation.Box, err error) {
	w, h := m.W, m.H
	if f.resize > 0 {
		if m, err = m.ResizeShort(f.resize, filter); err != nil {
			return nil, nil, err
		}
	}
	if !f.size.IsZero() {
		if m, err = m.Resize(f.size.W, f.size.H, filter); err != nil {
			return nil, nil, err
		}
	}
	x, y := float64(m.W)/float64(w), float64(m.H)/float64(h)
	left, top := 0, 0
	if !f.crop.IsZero() {
		left, top = picture.Margin(m.W, f.crop.W), picture.Margin(m.H, f.crop.H)
		if m, err = m.Crop(f.crop.W, f.crop.H); err != nil {
			return nil, nil, err
		}
	}
	for _, b := range boxes {
		// Products are rounded to float64, so that processors with fused multiply-add give the same bits.
		b = annotation.Box{
			Left:   max(float64(b.Left*x)-float64(left), 0),
			Top:    max(float64(b.Top*y)-float64(top), 0),
			Right:  min(float64(b.Right*x)-float64(left), float64(m.W)),
			Bottom: min(float64(b.Bottom*y)-float64(top), float64(m.H)),
		}
		if b.Left < b.Right && b.Top < b.Bottom {
			inside = append(inside, b)
		}
	}
	return m, inside, nil
}

// turned returns a box of an image of w×h pixels once the image is turned by its EXIF orientation, as
// picture.RGB.Oriented turns it.
func turned(b annotation.Box, w, h float64, orientation int) annotation.Box {
	mirrored := annotation.Box{Left: w - b.Right, Right: w - b.Left, Top: b.Top, Bottom: b.Bottom}
	flipped := func(b annotation.Box) annotation.Box {
		return annotation.Box{Left: b.Left, Right: b.Right, Top: h - b.Bottom, Bottom: h - b.Top}
	}
	transposed := func(b annotation.Box) annotation.Box {
		return annotation.Box{Left: b.Top, Right: b.Bottom, Top: b.Left, Bottom: b.Right}
	}
	switch orientation {
	case 2:
		return mirrored
	case 3:
		return flipped(mirrored)
	case 4:
		return flipped(b)
	case 5:
		return transposed(b)
	case 6:
		return transposed(flipped(b))
	case 7:
		return transposed(flipped(mirrored))
	case 8:
		return transposed(mirrored)
	}
	return b
}

// A region is the position of a photograph's objects: a mask, boxes, both or neither, in a picture of w×h
// pixels.
type region struct {
	w, h  int
	mask  *picture.RGB // as a mask's payload: 1 on the object, stages.Ignored for a pixel that doesn't count
	boxes []annotation.Box
	boxed bool
}

// A photograph holds the payloads of one image; mask and boxes are nil if it has none.
type photograph struct {
	sub                string // the suffix of its id
	image, mask, boxes []byte
	label              int64   // -1 without a label
	above              float64 // the share of its pixels above white
	full               bool    // all pixels of the mask that count are on the object
}

// frame returns a photograph's payloads. A region has the size of the file's pixels, and is turned with
// them by the EXIF orientation, or has the size after turning.
func (f framing) frame(file opened, regions ...region) (p photograph, err error) {
	m, turn := file.RGB, file.turn
	p.above = float64(file.above) / float64(m.W*m.H)
	shown := m.Oriented(turn)
	var boxes []annotation.Box
	boxed := false
	for _, r := range regions {
		by := turn
		switch {
		case r.w == m.W && r.h == m.H:
		case r.w == shown.W && r.h == shown.H:
			by = 1
		default:
			return p, fmt.Errorf("the objects are marked in a picture of %d×%d pixels, the image has %d×%d",
				r.w, r.h, m.W, m.H)
		}
		if r.mask != nil {
			mask, _, err := f.apply(r.mask.Oriented(by), picture.Nearest(), nil)
			if err != nil {
				return p, err
			}
			on := make([]uint8, mask.W*mask.H)
			for i := range on {
				on[i] = mask.Pix[3*i]
			}
			p.mask, p.full = stages.NewTensor(on, mask.H, mask.W).Encode(), slices.Contains(on, 1) &&
				!slices.Contains(on, 0)
		}
		boxed = boxed || r.boxed
		for _, b := range r.boxes {
			boxes = append(boxes, turned(b, float64(r.w), float64(r.h), by))
		}
	}
	if m, boxes, err = f.apply(shown, f.kernel(), boxes); err != nil {
		return p, err
	}
	p.image = stages.NewTensor(m.Planes(), 3, m.H, m.W).Encode()
	if boxed {
		edges := make([]float32, 0, 4*len(boxes))
		for _, b := range boxes {
			edges = append(edges, float32(b.Left), float32(b.Top), float32(b.Right), float32(b.Bottom))
		}
		p.boxes = stages.NewTensor(edges, len(boxes), 4).Encode()
	}
	return p, nil
}

// maskOf returns a picture of a region's pixels.
func maskOf(w, h int, on func(i int) bool) *picture.RGB {
	m := picture.NewRGB(w, h)
	for i := range w * h {
		if on(i) {
			m.Pix[3*i], m.Pix[3*i+1], m.Pix[3*i+2] = 1, 1, 1
		}
	}
	return m
}
