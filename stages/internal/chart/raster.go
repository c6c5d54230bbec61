package chart

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"slices"

	"github.com/runexp/runexp/stages/internal/picture"
)

// A Raster is an image of a figure: a map, in the colours of a palette, or a photograph. Files have it in its
// own pixels.
type Raster struct {
	image.Image               // *image.Paletted or *image.RGBA
	file        []byte        // a JPEG; nil if lines has the pixels
	lines       []byte        // compressed, as in a PNG
	palette     []color.NRGBA // nil for a photograph
}

// jpegQuality is that of photographs, of 100.
const jpegQuality = 85

// Photo returns a photograph: as a JPEG, or without loss where that takes less. Lossless ones of 64 pixels a
// side would take more than two thirds of a sheet's file.
func Photo(m *picture.RGB) *Raster {
	img := image.NewRGBA(image.Rect(0, 0, m.W, m.H))
	for i := range m.W * m.H {
		copy(img.Pix[4*i:], m.Pix[3*i:][:3])
		img.Pix[4*i+3] = 255
	}
	r := &Raster{Image: img}
	r.lines = smallestLines(m.Pix, 3*m.W, 3, filterSub, filterPaeth)
	var b bytes.Buffer
	err := jpeg.Encode(&b, img, &jpeg.Options{Quality: jpegQuality})
	if err == nil && b.Len() < len(r.lines) {
		r.file, r.lines = b.Bytes(), nil
	}
	return r
}

// Indexed returns an image of w×h pixels in the colours of a palette of at most 256: a pixel is the number of
// its colour.
func Indexed(w, h int, pixels []uint8, palette []color.NRGBA) *Raster {
	img := image.NewPaletted(image.Rect(0, 0, w, h), nil)
	for _, c := range palette {
		img.Palette = append(img.Palette, c)
	}
	img.Pix = pixels
	return &Raster{Image: img, palette: palette, lines: smallestLines(pixels, w, 1, filterNone, filterSub)}
}

// size returns width and height.
func (r *Raster) size() (w, h int) { return r.Bounds().Dx(), r.Bounds().Dy() }

// same reports whether both are the same image.
func (r *Raster) same(o *Raster) bool {
	return r.Bounds() == o.Bounds() && slices.Equal(r.palette, o.palette) && bytes.Equal(r.file, o.file) &&
		bytes.Equal(r.lines, o.lines)
}

// png returns a PNG file of the lines.
func (r *Raster) png() []byte {
	w, h := r.size()
	if r.palette == nil {
		return pngFile(w, h, trueColour, r.lines)
	}
	var colours, opacity []byte
	opaque := 0 // up to which colour not all are
	for i, c := range r.palette {
		colours, opacity = append(colours, c.R, c.G, c.B), append(opacity, c.A)
		if c.A < 255 {
			opaque = i + 1
		}
	}
	more := []chunk{{"PLTE", colours}}
	if opaque > 0 {
		more = append(more, chunk{"tRNS", opacity[:opaque]})
	}
	return pngFile(w, h, indexed, r.lines, more...)
}

// url returns the image as a data URL.
func (r *Raster) url() string {
	if r.file != nil {
		return "data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(r.file)
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(r.png())
}

// object adds the image to a PDF file and returns its number.
func (r *Raster) object(d *document) int {
	w, h := r.size()
	head := fmt.Sprintf("/Type/XObject/Subtype/Image/Width %d/Height %d/BitsPerComponent 8", w, h)
	lines := "/DecodeParms<</Predictor 15/BitsPerComponent 8/Colors %d/Columns %d>>/Filter/FlateDecode"
	switch {
	case r.file != nil:
		return d.raw(head+"/ColorSpace/DeviceRGB/Filter/DCTDecode", r.file)
	case r.palette == nil:
		return d.raw(head+"/ColorSpace/DeviceRGB"+fmt.Sprintf(lines, 3, w), r.lines)
	}
	var colours []byte
	solid := true
	for _, c := range r.palette {
		colours = append(colours, c.R, c.G, c.B)
		solid = solid && c.A == 255
	}
	space := fmt.Sprintf("/ColorSpace %d 0 R", d.shared(fmt.Sprintf("[/Indexed/DeviceRGB %d<%x>]",
		len(r.palette)-1, colours)))
	if !solid {
		pixels := r.Image.(*image.Paletted).Pix
		opacity := make([]byte, len(pixels))
		for i, p := range pixels {
			opacity[i] = r.palette[p].A
		}
		mask := d.raw(head+"/ColorSpace/DeviceGray"+fmt.Sprintf(lines, 1, w),
			smallestLines(opacity, w, 1, filterNone))
		space += fmt.Sprintf("/SMask %d 0 R", mask)
	}
	return d.raw(head+space+fmt.Sprintf(lines, 1, w), r.lines)
}

// The filters of a line of a PNG file: what is subtracted from a byte.
const (
	filterNone  = 0
	filterSub   = 1 // the byte of the pixel before
	filterPaeth = 4 // the nearest of its neighbours
)

// smallestLines compresses the lines of an image for a PNG file or a PDF stream, all with whichever of the
// filters makes the least of them. stride is the length of a line, and step of a pixel, in bytes.
func smallestLines(pixels []byte, stride, step int, filters ...byte) (best []byte) {
	for _, filter := range filters {
		if b := compressLines(pixels, stride, step, filter); best == nil || len(b) < len(best) {
			best = b
		}
	}
	return best
}

func compressLines(pixels []byte, stride, step int, filter byte) []byte {
	var b bytes.Buffer
	z, err := zlib.NewWriterLevel(&b, zlib.BestCompression)
	if err != nil {
		panic(err) // the level exists
	}
	line, above := make([]byte, 1+stride), make([]byte, stride)
	line[0] = filter
	for ; len(pixels) > 0; pixels = pixels[stride:] {
		now := pixels[:stride]
		copy(line[1:], now)
		for i := range now {
			var left, corner byte
			if i >= step {
				left, corner = now[i-step], above[i-step]
			}
			switch filter {
			case filterSub:
				line[1+i] -= left
			case filterPaeth:
				line[1+i] -= paeth(int(left), int(above[i]), int(corner))
			}
		}
		z.Write(line) // a buffer never fails
		above = now
	}
	z.Close()
	return b.Bytes()
}

// paeth returns whichever of the left, upper and upper left byte is nearest to left + up − corner.
func paeth(left, up, corner int) byte {
	far := func(v int) int { return max(left+up-corner-v, v-left-up+corner) }
	switch {
	case far(left) <= far(up) && far(left) <= far(corner):
		return byte(left)
	case far(up) <= far(corner):
		return byte(up)
	}
	return byte(corner)
}

// The kinds of colours of PNG files.
const (
	trueColour = 2
	indexed    = 3
)

// A chunk is a part of a PNG file.
type chunk struct {
	name string
	data []byte
}

// pngFile returns a PNG file with eight bits per channel or index.
func pngFile(w, h int, kind byte, lines []byte, more ...chunk) []byte {
	header := be.AppendUint32(be.AppendUint32(nil, uint32(w)), uint32(h))
	chunks := append([]chunk{{"IHDR", append(header, 8, kind, 0, 0, 0)}}, more...)
	out := []byte("\x89PNG\r\n\x1a\n")
	for _, c := range append(chunks, chunk{"IDAT", lines}, chunk{"IEND", nil}) {
		body := append([]byte(c.name), c.data...)
		out = be.AppendUint32(out, uint32(len(c.data)))
		out = append(out, body...)
		out = be.AppendUint32(out, crc32.ChecksumIEEE(body))
	}
	return out
}
