package picture

import (
	"errors"
	"fmt"
	"slices"
)

// JPEG files are decoded here rather than by image/jpeg for two reasons. First, the standard only bounds the
// error of the inverse transform, so that decoders differ by a few levels, enough to flip about one
// classification in a hundred; this decoder has the arithmetic of libjpeg's default, with which networks are
// trained. Second, its pixels don't change with the Go release.
//
// References are to ITU-T T.81. Supported are baseline, extended sequential and progressive Huffman coding of
// 8-bit samples, restart intervals, sampling factors that divide the largest, and one, three or four
// components.

const (
	markSOF0 = 0xc0 // baseline
	markSOF1 = 0xc1 // extended sequential
	markSOF2 = 0xc2 // progressive
	markDHT  = 0xc4
	markJPG  = 0xc8
	markDAC  = 0xcc
	markRST0 = 0xd0
	markSOI  = 0xd8
	markEOI  = 0xd9
	markSOS  = 0xda
	markDQT  = 0xdb
	markDNL  = 0xdc
	markDRI  = 0xdd
	markAPP0 = 0xe0
	markAPPE = 0xee
	markTEM  = 0x01
)

// maxScans limits the time that a small hostile file can take; real files have about ten scans.
const maxScans = 500

var errTruncated = errors.New("it is truncated")

// zigzag maps coding order to positions in a block, figure A.6.
var zigzag = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10,
	17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34,
	27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36,
	29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46,
	53, 60, 61, 54, 47, 55, 62, 63,
}

// A component is one plane of a JPEG file.
type component struct {
	id         byte
	h, v       int // sampling factors
	tq         int
	w, hgt     int // in samples, without padding to whole blocks
	bw, bh     int // number of blocks that contain these samples
	stride     int // number of blocks allocated per row, a whole number of MCUs
	coef       [][64]int16
	quant      *[64]uint16 // the table at the component's first scan
	dcPred     int
	dcTab, ac  int
	plane      []uint8
	planeWidth int
}

type jpegDecoder struct {
	b    []byte
	pos  int
	bits bitReader

	w, h        int
	comps       []component
	hMax, vMax  int
	mcux, mcuy  int
	progressive bool
	quant       [4]*[64]uint16
	huff        [2][4]*huffman // DC, AC
	interval    int            // MCUs between restart markers, 0 for none
	eobRun      int
	scans       int
	jfif        bool
	adobe       int // colour transform of the Adobe marker, -1 if there is none
}

// jpegSize reads the size from the frame header.
func jpegSize(b []byte) (w, h int, err error) {
	d := &jpegDecoder{b: b, adobe: -1}
	err = d.parse(true)
	return d.w, d.h, err
}

// decodeJPEG decodes a JPEG file.
func decodeJPEG(b []byte) (*RGB, error) {
	d := &jpegDecoder{b: b, adobe: -1}
	if err := d.parse(false); err != nil {
		return nil, err
	}
	for i := range d.comps {
		d.comps[i].reconstruct()
	}
	return d.colours(), nil
}

// parse reads markers up to the end of the image, or to the frame header if headerOnly is set.
func (d *jpegDecoder) parse(headerOnly bool) error {
	if len(d.b) < 2 || d.b[0] != 0xff || d.b[1] != markSOI {
		return errors.New("it has no start marker")
	}
	d.pos = 2
	for {
		mark, ok := d.marker()
		if !ok || mark == markEOI {
			return d.finish(ok)
		}
		if mark == markTEM || mark >= markRST0 && mark <= markSOI {
			continue
		}
		seg, err := d.segment()
		if err != nil {
			return err
		}
		if err := d.read(mark, seg); err != nil || headerOnly && d.comps != nil {
			return err
		}
	}
}

// read reads the segment after a marker.
func (d *jpegDecoder) read(mark byte, seg []byte) error {
	switch mark {
	case markDQT:
		return d.readQuant(seg)
	case markDHT:
		return d.readHuffman(seg)
	case markDRI:
		if len(seg) < 2 {
			return errTruncated
		}
		d.interval = int(seg[0])<<8 | int(seg[1])
	case markSOF0, markSOF1, markSOF2:
		d.progressive = mark == markSOF2
		return d.readFrame(seg)
	case markDNL:
		return errors.New("its height follows the first scan, which isn't supported")
	case markSOS:
		return d.readScan(seg)
	case markAPP0:
		d.jfif = d.jfif || len(seg) >= 5 && string(seg[:5]) == "JFIF\x00"
	case markAPPE:
		if len(seg) >= 12 && string(seg[:5]) == "Adobe" {
			d.adobe = int(seg[11])
		}
	default:
		if mark > markSOF2 && mark <= 0xcf && mark != markJPG && mark != markDAC {
			return fmt.Errorf("its coding process %d (lossless, hierarchical or arithmetic) isn't supported",
				mark-markSOF0)
		}
	}
	return nil
}

// finish checks that the image is complete. A sequential file may lack its end marker; a progressive file
// without one may lack scans.
func (d *jpegDecoder) finish(ended bool) error {
	if d.comps == nil {
		return errTruncated
	}
	for _, c := range d.comps {
		if c.quant == nil {
			return errTruncated
		}
	}
	if !ended && d.progressive {
		return errTruncated
	}
	return nil
}

// marker finds the next marker, skipping bytes between segments as all decoders do.
func (d *jpegDecoder) marker() (byte, bool) {
	for d.pos+1 < len(d.b) {
		if d.b[d.pos] == 0xff && d.b[d.pos+1] != 0 && d.b[d.pos+1] != 0xff {
			d.pos += 2
			return d.b[d.pos-1], true
		}
		d.pos++
	}
	return 0, false
}

func (d *jpegDecoder) segment() ([]byte, error) {
	if d.pos+2 > len(d.b) {
		return nil, errTruncated
	}
	n := int(d.b[d.pos])<<8 | int(d.b[d.pos+1])
	if n < 2 || d.pos+n > len(d.b) {
		return nil, errTruncated
	}
	seg := d.b[d.pos+2 : d.pos+n]
	d.pos += n
	return seg, nil
}

func (d *jpegDecoder) readQuant(seg []byte) error {
	for len(seg) > 0 {
		wide, id := int(seg[0]>>4), seg[0]&15
		size := 64 * (1 + wide)
		if wide > 1 || id > 3 || len(seg) < 1+size {
			return errors.New("it has a damaged quantisation table")
		}
		t := new([64]uint16)
		for i := range t {
			if wide == 1 {
				t[zigzag[i]] = uint16(seg[1+2*i])<<8 | uint16(seg[2+2*i])
			} else {
				t[zigzag[i]] = uint16(seg[1+i])
			}
		}
		d.quant[id] = t
		seg = seg[1+size:]
	}
	return nil
}

func (d *jpegDecoder) readFrame(seg []byte) error {
	if d.comps != nil {
		return errors.New("it has two frames")
	}
	if len(seg) < 6 || len(seg) < 6+3*int(seg[5]) {
		return errTruncated
	}
	if seg[0] != 8 {
		return fmt.Errorf("samples of %d bits aren't supported", seg[0])
	}
	d.h, d.w = int(seg[1])<<8|int(seg[2]), int(seg[3])<<8|int(seg[4])
	n := int(seg[5])
	if d.w == 0 || d.h == 0 {
		return fmt.Errorf("its size is %d×%d pixels", d.w, d.h)
	}
	if n != 1 && n != 3 && n != 4 {
		return fmt.Errorf("%d components aren't supported", n)
	}
	comps := make([]component, n)
	for i := range comps {
		s := seg[6+3*i:]
		c := component{id: s[0], h: int(s[1] >> 4), v: int(s[1] & 15), tq: int(s[2])}
		if c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 || c.tq > 3 ||
			slices.ContainsFunc(comps[:i], func(o component) bool { return o.id == c.id }) {
			return errors.New("it has a damaged frame header")
		}
		comps[i] = c
		d.hMax, d.vMax = max(d.hMax, c.h), max(d.vMax, c.v)
	}
	d.mcux, d.mcuy = ceilDiv(d.w, 8*d.hMax), ceilDiv(d.h, 8*d.vMax)
	for i := range comps {
		c := &comps[i]
		if d.hMax%c.h != 0 || d.vMax%c.v != 0 {
			return fmt.Errorf("sampling factors %d and %d of %d and %d aren't supported", c.h, c.v, d.hMax,
				d.vMax)
		}
		c.w, c.hgt = ceilDiv(d.w*c.h, d.hMax), ceilDiv(d.h*c.v, d.vMax)
		c.bw, c.bh = ceilDiv(c.w, 8), ceilDiv(c.hgt, 8)
		c.stride = d.mcux * c.h
	}
	d.comps = comps
	return nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
