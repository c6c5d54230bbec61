package chart

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
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
	runs(c.Image, func(p color.RGBA, _, n int) { count[round(p)] += n })
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
	runs(c.Image, func(p color.RGBA, at, n int) {
		i := index[round(p)]
		for k := range n {
			out.Pix[at+k] = i
		}
	})
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out); err != nil {
		panic(err) // a buffer never fails
	}
	return b.Bytes()
}

// runs calls f for the runs of pixels of the same colour in every row, with the index of the first.
func runs(m *image.RGBA, f func(p color.RGBA, at, n int)) {
	w := m.Rect.Dx()
	for y := range m.Rect.Dy() {
		for x := 0; x < w; {
			p, n := m.RGBAAt(x, y), 1
			for x+n < w && m.RGBAAt(x+n, y) == p {
				n++
			}
			f(p, y*w+x, n)
			x += n
		}
	}
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

// TrueColour encodes the canvas as a PNG file with all its colours. Lines aren't filtered, or all by their
// differences from left to right, whichever is smaller: maps in few colours next to photographs take two
// thirds of what image/png's choices, line by line, make of them.
func (c *Canvas) TrueColour() []byte {
	r := c.Image.Rect
	lines := c.lines(false)
	if other := c.lines(true); len(other) < len(lines) {
		lines = other
	}
	const depth, trueColour = 8, 2
	header := binary.BigEndian.AppendUint32(nil, uint32(r.Dx()))
	header = binary.BigEndian.AppendUint32(header, uint32(r.Dy()))
	header = append(header, depth, trueColour, 0, 0, 0)
	out := []byte("\x89PNG\r\n\x1a\n")
	for _, chunk := range []struct {
		name string
		data []byte
	}{{"IHDR", header}, {"IDAT", lines}, {"IEND", nil}} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(chunk.data)))
		body := append([]byte(chunk.name), chunk.data...)
		out = append(out, body...)
		out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(body))
	}
	return out
}

// lines compresses the lines of a PNG file, as they are or with each pixel's difference from the one before.
func (c *Canvas) lines(differences bool) []byte {
	var b bytes.Buffer
	z, err := zlib.NewWriterLevel(&b, zlib.BestCompression)
	if err != nil {
		panic(err) // the level exists
	}
	r := c.Image.Rect
	line := make([]byte, 1+3*r.Dx()) // the filter, then red, green and blue
	for y := range r.Dy() {
		for x := range r.Dx() {
			copy(line[1+3*x:], c.Image.Pix[c.Image.PixOffset(x, y):][:3])
		}
		if differences {
			line[0] = 1
			for i := len(line) - 1; i > 3; i-- {
				line[i] -= line[i-3]
			}
		}
		z.Write(line) // a buffer never fails
	}
	z.Close()
	return b.Bytes()
}
