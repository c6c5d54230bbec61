package chart

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"slices"
)

// colourStep is the quantisation of colours in files: antialiased edges then share colours, and differences
// in the last bits of a blend vanish.
const colourStep = 8

// PNG encodes the canvas as a PNG file with at most 256 colours. Colours beyond the 256 most frequent become
// the nearest of these. The colours in keep are always preserved exactly.
func (c *Canvas) PNG(keep []color.RGBA) []byte {
	count := map[color.RGBA]int{}
	exact := map[color.RGBA]bool{}
	for _, k := range append([]color.RGBA{White}, keep...) {
		exact[k] = true
	}
	round := func(p color.RGBA) color.RGBA {
		if exact[p] {
			return p
		}
		for _, v := range []*uint8{&p.R, &p.G, &p.B} {
			*v = uint8(min((int(*v)+colourStep/2)/colourStep*colourStep, 255))
		}
		return p
	}
	r := c.Image.Rect
	for y := range r.Dy() {
		for x := range r.Dx() {
			count[round(c.Image.RGBAAt(x, y))]++
		}
	}
	var all []color.RGBA
	for p := range count {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int {
		if exact[a] != exact[b] {
			if exact[a] {
				return -1
			}
			return 1
		}
		return cmp.Or(-cmp.Compare(count[a], count[b]), cmp.Compare(value(a), value(b)))
	})
	index := map[color.RGBA]uint8{}
	var palette color.Palette
	for i, p := range all {
		if i < 256 {
			palette = append(palette, p)
			index[p] = uint8(i)
		} else {
			index[p] = uint8(nearest(palette, p))
		}
	}
	out := image.NewPaletted(r, palette)
	for y := range r.Dy() {
		for x := range r.Dx() {
			out.Pix[y*out.Stride+x] = index[round(c.Image.RGBAAt(x, y))]
		}
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out); err != nil {
		panic(err) // a buffer never fails
	}
	return b.Bytes()
}

func value(p color.RGBA) int { return int(p.R)<<16 | int(p.G)<<8 | int(p.B) }

func nearest(palette color.Palette, p color.RGBA) int {
	best, at := 1<<30, 0
	for i, c := range palette {
		q := c.(color.RGBA)
		dr, dg, db := int(q.R)-int(p.R), int(q.G)-int(p.G), int(q.B)-int(p.B)
		if d := dr*dr + dg*dg + db*db; d < best {
			best, at = d, i
		}
	}
	return at
}
