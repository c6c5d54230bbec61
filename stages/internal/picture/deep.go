package picture

import (
	"encoding/binary"
	"image"
	"math/bits"
)

// deep is an image of 16-bit channels: pixels of this many values, of which the first channels are colours,
// high byte first.
type deep struct {
	w, h, channels, colours, stride int
	pix                             []uint8
}

// deepOf returns nil for an image of 8-bit channels.
func deepOf(img image.Image) *deep {
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	switch m := img.(type) {
	case *image.Gray16:
		return &deep{w, h, 1, 1, m.Stride, m.Pix}
	case *image.NRGBA64:
		return &deep{w, h, 4, 3, m.Stride, m.Pix}
	case *image.RGBA64:
		return &deep{w, h, 4, 3, m.Stride, m.Pix}
	}
	return nil
}

// each calls use with the colours of every pixel.
func (d *deep) each(use func(i int, colours [3]int)) {
	for i := range d.w * d.h {
		p := d.pix[i/d.w*d.stride+i%d.w*2*d.channels:]
		var c [3]int
		for k := range c {
			c[k] = int(binary.BigEndian.Uint16(p[2*min(k, d.colours-1):]))
		}
		use(i, c)
	}
}

// scaled returns 255·v/white, rounded, and the number of pixels that have a value above white.
func (d *deep) scaled(white int) (m *RGB, above int) {
	m = NewRGB(d.w, d.h)
	d.each(func(i int, c [3]int) {
		for k, v := range c {
			m.Pix[3*i+k] = uint8((255*min(v, white) + white/2) / white)
		}
		if max(c[0], c[1], c[2]) > white {
			above++
		}
	})
	return m, above
}

// A Depth describes the values in the 16-bit channels of a file.
type Depth struct {
	Largest int // value
	Bits    int // that the file declares as significant, PNG's sBIT; 0 if it doesn't
}

// MayBeDeep reports whether a file has 16-bit channels, as its first 26 bytes show.
func MayBeDeep(b []byte) bool {
	f, err := recognise(b)
	return err == nil && (f.name == "TIFF" || f.name == "PNG" && len(b) > 24 && b[24] == 16)
}

// DepthOf returns the depth of a file of 16-bit channels; ok is false for another file, which isn't decoded.
func DepthOf(b []byte) (d Depth, ok bool) {
	f, err := recognise(b)
	if err != nil || !MayBeDeep(b) {
		return d, false
	}
	err = f.guarded(b, func() error {
		img, err := f.image(b)
		if err != nil {
			return err
		}
		if m := deepOf(img); m != nil {
			ok = true
			m.each(func(_ int, c [3]int) { d.Largest = max(d.Largest, c[0], c[1], c[2]) })
		}
		return nil
	})
	if f.name == "PNG" {
		d.Bits = significant(b)
	}
	return d, ok && err == nil
}

// significant returns the most bits of a channel that PNG's chunk sBIT declares, 0 without one.
func significant(b []byte) (n int) {
	for b = b[8:]; len(b) >= 12; {
		size := binary.BigEndian.Uint32(b)
		if uint64(size) > uint64(len(b)-12) || string(b[4:8]) == "IDAT" {
			return 0
		}
		if string(b[4:8]) == "sBIT" {
			for _, v := range b[8 : 8+size] {
				n = max(n, int(v))
			}
			return n
		}
		b = b[12+size:]
	}
	return 0
}

// White returns the value that is probably white where the largest values of 16-bit pictures are so: that of
// the bits that a file declares if they hold all values, or else of the next depth that cameras and scanners
// have. It is 65535 if the values need all 16 bits.
func White(all ...Depth) int {
	largest, declared := 0, 0
	for _, d := range all {
		largest, declared = max(largest, d.Largest), max(declared, d.Bits)
	}
	need := bits.Len(uint(largest))
	if declared >= need && declared > 0 && declared < 16 {
		return 1<<declared - 1
	}
	for _, depth := range []int{8, 10, 12, 14, 15} {
		if need <= depth {
			return 1<<depth - 1
		}
	}
	return 1<<16 - 1
}
