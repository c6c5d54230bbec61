package chart

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/runexp/runexp/stages/internal/picture"
)

// colourStep is the quantisation of colours in files: antialiased edges then share colours, and differences
// in the last bits of a blend vanish.
const colourStep = 8

// fewColours encodes an image as a PNG file with at most 256 colours. Colours beyond the 256 most frequent
// become the nearest of these. The colours in keep are always preserved exactly.
func fewColours(img *image.RGBA, keep []color.RGBA) []byte {
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
	r := img.Rect
	runs(img, func(p color.RGBA, _, n int) { count[round(p)] += n })
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
	runs(img, func(p color.RGBA, at, n int) {
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

// allColours encodes an image as a PNG file with all its colours.
func allColours(img *image.RGBA) []byte {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	pixels := make([]byte, 0, 3*w*h)
	for i := range w * h {
		pixels = append(pixels, img.Pix[4*i:][:3]...)
	}
	return pngFile(w, h, trueColour, smallestLines(pixels, 3*w, 3, filterNone, filterSub))
}

// A pixels is the canvas of PNG files. Other than gonum's it draws images between whole pixels, each of a
// map's pixels as large as the others where that is possible.
type pixels struct {
	*vgimg.Canvas
	img    *image.RGBA
	images bool // there is one
}

func newPixels(f Figure, dpi int) *pixels {
	at := func(l vg.Length) int { return int(l.Dots(float64(dpi)) + 0.5) }
	img := image.NewRGBA(image.Rect(0, 0, at(f.Width), at(f.Height)))
	c := vgimg.NewWith(vgimg.UseImage(img), vgimg.UseDPI(dpi))
	return &pixels{c, c.Image().(*image.RGBA), false}
}

func (c *pixels) DrawImage(r vg.Rectangle, img image.Image) {
	c.images = true
	m := img.(*Raster)
	at := func(l vg.Length) int { return int(math.Round(l.Dots(c.DPI()))) }
	size := r.Size()
	w, h := max(at(size.X), 1), max(at(size.Y), 1)
	x, y := at(r.Min.X), c.img.Rect.Dy()-at(r.Min.Y)-h
	for i, p := range m.resized(w, h) {
		to := c.img.Pix[max(c.img.PixOffset(x+i%w, y+i/w), 0):][:3]
		for k, v := range [3]uint8{p.R, p.G, p.B} {
			to[k] = uint8((int(v)*int(p.A) + int(to[k])*(255-int(p.A)) + 127) / 255)
		}
	}
}

// resized returns the pixels of the image at a size: repeated where that is exact or the image is a map and
// becomes larger, otherwise smooth.
func (r *Raster) resized(w, h int) []color.NRGBA {
	fromW, fromH := r.size()
	out := make([]color.NRGBA, w*h)
	if w%fromW == 0 && h%fromH == 0 || r.palette != nil && w >= fromW && h >= fromH {
		for i := range out {
			out[i] = color.NRGBAModel.Convert(r.At(i%w*fromW/w, i/w*fromH/h)).(color.NRGBA)
		}
		return out
	}
	var channels [4][]float64
	for i := range fromW * fromH {
		p := color.NRGBAModel.Convert(r.At(i%fromW, i/fromW)).(color.NRGBA)
		a := float64(p.A) / 255
		for k, v := range [4]float64{a * float64(p.R), a * float64(p.G), a * float64(p.B), a} {
			channels[k] = append(channels[k], v)
		}
	}
	for k := range channels {
		channels[k] = picture.ResizePlane(channels[k], fromW, fromH, w, h, picture.Bilinear())
	}
	for i := range out {
		a := channels[3][i]
		channel := func(k int) uint8 { return uint8(math.Round(min(channels[k][i]/max(a, 1e-9), 255))) }
		out[i] = color.NRGBA{channel(0), channel(1), channel(2), uint8(math.Round(255 * min(a, 1)))}
	}
	return out
}
