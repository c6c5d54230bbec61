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

	"github.com/runexp/runexp/stages"
)

// MaxPixels is the size of the largest image that is decoded. The size is checked in the header, before
// anything is allocated: a small file may declare a size that would exhaust the memory.
const MaxPixels = 1 << 26

// A format is an image file format, detected by its first bytes.
type format struct {
	name   string
	magic  string // "?" matches any byte
	size   func(b []byte) (w, h int, err error)
	decode func(b []byte) (*RGB, error)        // of JPEG, which has colours of its own
	image  func(b []byte) (image.Image, error) // of the other formats
	exif   func(b []byte) []byte               // the EXIF block or nil; nil for formats without EXIF
}

func formats() []format {
	return []format{
		{"JPEG", "\xff\xd8", jpegSize, decodeJPEG, nil, jpegEXIF},
		goFormat("PNG", "\x89PNG\r\n\x1a\n", png.Decode, png.DecodeConfig, pngEXIF),
		goFormat("WebP", "RIFF????WEBP", webp.Decode, webp.DecodeConfig, webpEXIF),
		goFormat("BMP", "BM????\x00\x00\x00\x00", bmp.Decode, bmp.DecodeConfig, nil),
		{"TIFF", "II*\x00", tiffSize, nil, decodeTIFF, wholeFile},
		{"TIFF", "MM\x00*", tiffSize, nil, decodeTIFF, wholeFile},
	}
}

// Formats names the formats that [Decode] reads.
const Formats = "JPEG, PNG, WebP, BMP or TIFF"

func goFormat(name, magic string, decode func(io.Reader) (image.Image, error),
	config func(io.Reader) (image.Config, error), exif func([]byte) []byte) format {
	return format{name, magic,
		func(b []byte) (int, int, error) {
			c, err := config(bytes.NewReader(b))
			return c.Width, c.Height, err
		}, nil,
		func(b []byte) (image.Image, error) { return decode(bytes.NewReader(b)) }, exif}
}

// Decode reads a JPEG, PNG, WebP, BMP or TIFF file, whatever its extension, like Pillow's convert("RGB"):
// grey images become RGB, alpha is dropped without blending, CMYK is multiplied out. 16-bit channels keep
// their high byte. The EXIF orientation isn't applied, see [Orientation]. An animation is an error.
func Decode(b []byte) (*RGB, error) {
	m, _, err := DecodeRange(b, 0)
	return m, err
}

// DecodeRange is [Decode] of a file whose 16-bit channels go from 0 to white, if white isn't 0: they become
// 255·v/white, rounded, and at most 255. above is the number of values that are cut.
func DecodeRange(b []byte, white int) (m *RGB, above int, err error) {
	f, err := recognise(b)
	if err != nil {
		return nil, 0, err
	}
	if f.decode != nil {
		err = f.guarded(b, func() (err error) {
			m, err = f.decode(b)
			return err
		})
		return m, 0, err
	}
	err = f.guarded(b, func() error {
		img, err := f.image(b)
		if err != nil {
			return err
		}
		if d := deepOf(img); d != nil && white != 0 {
			m, above = d.scaled(white)
		} else {
			m = toRGB(img)
		}
		return nil
	})
	return m, above, err
}

// guarded calls decode with a file that fits.
func (f format) guarded(b []byte, decode func() error) (err error) {
	// A decoder's panic on a hostile file mustn't end the process.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a damaged %s file: %v", f.name, r)
		}
	}()
	if err := f.fits(b); err != nil {
		return err
	}
	if err := decode(); err != nil {
		return damaged(f.name, err)
	}
	return nil
}

// fits rejects a file whose header declares no pixels, or too many.
func (f format) fits(b []byte) error {
	w, h, err := f.size(b)
	if err != nil {
		return damaged(f.name, err)
	}
	if w < 1 || h < 1 {
		return fmt.Errorf("a %s file of %d×%d pixels", f.name, w, h)
	}
	if w > MaxPixels/h {
		return fmt.Errorf("a %s file of %d×%d pixels is too large: the maximum is %d pixels", f.name, w, h,
			MaxPixels)
	}
	return nil
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
	const known = "neither JPEG, PNG, WebP, BMP nor TIFF"
	if name, picture := otherKind(b); picture {
		return format{}, fmt.Errorf("%s isn't read: %s", name, known)
	}
	if is := stages.Mistaken(b[:min(len(b), KindBytes)]); is != nil {
		return format{}, fmt.Errorf("%s: it is %w", known, is)
	}
	return format{}, errors.New(known)
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
	if errors.Is(err, errUnread) {
		return fmt.Errorf("a %s file %w", name, err)
	}
	// Some decoders don't wrap io.ErrUnexpectedEOF.
	if errors.Is(err, errTruncated) || errors.Is(err, io.EOF) ||
		strings.HasSuffix(err.Error(), io.ErrUnexpectedEOF.Error()) {
		return fmt.Errorf("a truncated %s file", name)
	}
	return fmt.Errorf("a damaged %s file: %w", name, err)
}

// toRGB drops all channels but red, green and blue. Common types have loops of their own for speed, and lossy
// WebP for libwebp's exact arithmetic.
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
	case *image.RGBA: // opaque, except TIFF, whose colours may be multiplied with alpha
		each(m, r, func(d []uint8, x, y int) {
			p := src.Pix[src.PixOffset(x, y):][:4]
			copy(d, p[:3])
			if a := int(p[3]); a != 0 && a != 255 {
				for k := range d {
					d[k] = uint8(min(255*int(p[k])/a, 255))
				}
			}
		})
	case *image.NRGBA:
		each(m, r, func(d []uint8, x, y int) { copy(d, src.Pix[src.PixOffset(x, y):][:3]) })
	case *image.Paletted:
		// Transparent entries keep their colour.
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

// opaque returns a colour's red, green and blue, ignoring alpha.
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

// each calls f for every pixel of r with the pixel's values in m.
func each(m *RGB, r image.Rectangle, f func(d []uint8, x, y int)) {
	i := 0
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			f(m.Pix[i:i+3], x, y)
			i += 3
		}
	}
}
