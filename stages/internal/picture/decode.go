package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/webp"
)

// MaxPixels is the largest image that is decoded. The header says how large an image is, so a small file that
// would fill the memory is refused before anything is allocated.
const MaxPixels = 1 << 26

// A format is a kind of image file, recognised by its first bytes.
type format struct {
	name   string
	magic  string // "?" stands for any byte
	size   func(b []byte) (w, h int, err error)
	decode func(b []byte) (*RGB, error)
	exif   func(b []byte) []byte // the EXIF block, nil if there is none; nil for formats without
}

func formats() []format {
	return []format{
		{"JPEG", "\xff\xd8", jpegSize, decodeJPEG, jpegEXIF},
		goFormat("PNG", "\x89PNG\r\n\x1a\n", png.Decode, png.DecodeConfig, pngEXIF),
		goFormat("WebP", "RIFF????WEBP", webp.Decode, webp.DecodeConfig, webpEXIF),
		goFormat("BMP", "BM????\x00\x00\x00\x00", bmp.Decode, bmp.DecodeConfig, nil),
	}
}

func goFormat(name, magic string, decode func(io.Reader) (image.Image, error),
	config func(io.Reader) (image.Config, error), exif func([]byte) []byte) format {
	return format{name, magic,
		func(b []byte) (int, int, error) {
			c, err := config(bytes.NewReader(b))
			return c.Width, c.Height, err
		},
		func(b []byte) (*RGB, error) {
			img, err := decode(bytes.NewReader(b))
			if err != nil {
				return nil, err
			}
			return toRGB(img), nil
		}, exif}
}

// Decode reads a JPEG, PNG, WebP or BMP file, whatever its name says, as Pillow's convert("RGB") would: grey
// is repeated, transparency dropped without blending, CMYK multiplied out. Of 16-bit channels the high byte
// is kept. Pixels are as they are stored: see [Orientation]. An animation gives an error.
func Decode(b []byte) (m *RGB, err error) {
	f, err := recognise(b)
	if err != nil {
		return nil, err
	}
	// A decoder's panic on a hostile file must not take the program with it.
	defer func() {
		if r := recover(); r != nil {
			m, err = nil, fmt.Errorf("a damaged %s file: %v", f.name, r)
		}
	}()
	w, h, err := f.size(b)
	if err != nil {
		return nil, damaged(f.name, err)
	}
	if w < 1 || h < 1 {
		return nil, fmt.Errorf("a %s file of %d×%d pixels", f.name, w, h)
	}
	if w > MaxPixels/h {
		return nil, fmt.Errorf("a %s file of %d×%d pixels is too large: at most %d pixels are read", f.name,
			w, h, MaxPixels)
	}
	if m, err = f.decode(b); err != nil {
		return nil, damaged(f.name, err)
	}
	return m, nil
}

func recognise(b []byte) (format, error) {
	for _, f := range formats() {
		if hasMagic(b, f.magic) {
			return f, nil
		}
	}
	if len(b) == 0 {
		return format{}, errors.New("an empty file")
	}
	return format{}, errors.New("neither JPEG, PNG, WebP nor BMP")
}

func hasMagic(b []byte, magic string) bool {
	if len(b) < len(magic) {
		return false
	}
	for i := range len(magic) {
		if magic[i] != '?' && magic[i] != b[i] {
			return false
		}
	}
	return true
}

func damaged(name string, err error) error {
	// Some decoders only say it in words.
	if errors.Is(err, errTruncated) || errors.Is(err, io.EOF) ||
		strings.HasSuffix(err.Error(), io.ErrUnexpectedEOF.Error()) {
		return fmt.Errorf("a truncated %s file", name)
	}
	return fmt.Errorf("a damaged %s file: %w", name, err)
}

// toRGB drops everything but red, green and blue. The loops over common types are there for speed, and, for
// lossy WebP, for the exact numbers.
func toRGB(img image.Image) *RGB {
	r := img.Bounds()
	m := NewRGB(r.Dx(), r.Dy())
	switch src := img.(type) {
	case *image.YCbCr:
		fromVP8(m, src)
	case *image.NYCbCrA:
		fromVP8(m, &src.YCbCr)
	case *image.Gray:
		each(m, r, func(d []uint8, x, y int) {
			v := src.Pix[src.PixOffset(x, y)]
			d[0], d[1], d[2] = v, v, v
		})
	case *image.RGBA: // opaque: the decoders use it for nothing else
		each(m, r, func(d []uint8, x, y int) { copy(d, src.Pix[src.PixOffset(x, y):][:3]) })
	case *image.NRGBA:
		each(m, r, func(d []uint8, x, y int) { copy(d, src.Pix[src.PixOffset(x, y):][:3]) })
	case *image.Paletted:
		// Transparent entries keep the colour that stands in the file.
		palette := make([][3]uint8, 256)
		for i, c := range src.Palette {
			palette[i] = opaque(c)
		}
		each(m, r, func(d []uint8, x, y int) { copy(d, palette[src.ColorIndexAt(x, y)][:]) })
	default:
		each(m, r, func(d []uint8, x, y int) {
			c := opaque(img.At(x, y))
			copy(d, c[:])
		})
	}
	return m
}

// opaque returns a colour's own red, green and blue, whatever its alpha.
func opaque(c color.Color) [3]uint8 {
	switch c := c.(type) {
	case color.NRGBA:
		return [3]uint8{c.R, c.G, c.B}
	case color.NRGBA64:
		return [3]uint8{uint8(c.R >> 8), uint8(c.G >> 8), uint8(c.B >> 8)}
	}
	r, g, b, _ := c.RGBA()
	return [3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}
}

// each calls f for every pixel with its place in m and its position in r.
func each(m *RGB, r image.Rectangle, f func(d []uint8, x, y int)) {
	i := 0
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			f(m.Pix[i:i+3], x, y)
			i += 3
		}
	}
}
