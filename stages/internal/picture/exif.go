package picture

import (
	"bytes"
	"encoding/binary"
)

// tagOrientation is the EXIF tag Orientation.
const tagOrientation = 0x0112

// Orientation returns the EXIF orientation of a JPEG, PNG or WebP file, from 1 to 8. It is 1, the identity,
// if the file has no EXIF block or a damaged one, as in image viewers.
func Orientation(b []byte) int {
	f, err := recognise(b)
	if err != nil || f.exif == nil {
		return 1
	}
	return tiffOrientation(f.exif(b))
}

// jpegEXIF returns the EXIF block of the first APP1 segment that has one.
func jpegEXIF(b []byte) []byte {
	for b = b[2:]; len(b) >= 4 && b[0] == 0xff; {
		switch mark := b[1]; {
		case mark == 0xff: // padding
			b = b[1:]
			continue
		case mark == markTEM || mark >= markRST0 && mark <= markSOI:
			b = b[2:]
			continue
		case mark == markSOS || mark == markEOI:
			return nil
		}
		n := 2 + int(binary.BigEndian.Uint16(b[2:]))
		if n < 4 || n > len(b) {
			return nil
		}
		if block, ok := bytes.CutPrefix(b[4:n], []byte("Exif\x00\x00")); ok && b[1] == markAPP0+1 {
			return block
		}
		b = b[n:]
	}
	return nil
}

// pngEXIF returns the content of the chunk eXIf.
func pngEXIF(b []byte) []byte {
	for b = b[8:]; len(b) >= 12; {
		n := binary.BigEndian.Uint32(b)
		if uint64(n) > uint64(len(b)-12) {
			return nil
		}
		if string(b[4:8]) == "eXIf" {
			return b[8 : 8+n]
		}
		b = b[12+n:]
	}
	return nil
}

// webpEXIF returns the content of the chunk EXIF, which some writers prefix as in JPEG.
func webpEXIF(b []byte) []byte {
	for b = b[12:]; len(b) >= 8; {
		n := binary.LittleEndian.Uint32(b[4:])
		if uint64(n) > uint64(len(b)-8) {
			return nil
		}
		if string(b[:4]) == "EXIF" {
			return bytes.TrimPrefix(b[8:8+n], []byte("Exif\x00\x00"))
		}
		b = b[min(len(b), 8+int(n)+int(n%2)):]
	}
	return nil
}

// tiffOrientation reads the orientation from the first directory of a TIFF block, by default 1.
func tiffOrientation(b []byte) int {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case bytes.HasPrefix(b, []byte("II*\x00")):
	case bytes.HasPrefix(b, []byte("MM\x00*")):
		order = binary.BigEndian
	default:
		return 1
	}
	if len(b) < 8 {
		return 1
	}
	at := uint64(order.Uint32(b[4:]))
	if at+2 > uint64(len(b)) {
		return 1
	}
	entries := b[at+2:]
	for range order.Uint16(b[at:]) {
		if len(entries) < 12 {
			return 1
		}
		if order.Uint16(entries) == tagOrientation {
			const short = 3
			o := int(order.Uint16(entries[8:]))
			if order.Uint16(entries[2:]) != short || o < 1 || o > 8 {
				return 1
			}
			return o
		}
		entries = entries[12:]
	}
	return 1
}

// Oriented returns the image rotated and mirrored for display, given its EXIF orientation: EXIF 2.32, section
// 4.6.4, tag 274.
func (m *RGB) Oriented(orientation int) *RGB {
	if orientation < 2 || orientation > 8 {
		return m
	}
	out := NewRGB(m.W, m.H)
	if orientation >= 5 { // width and height are swapped
		out = NewRGB(m.H, m.W)
	}
	i := 0
	for y := range out.H {
		for x := range out.W {
			var fx, fy int
			switch orientation {
			case 2:
				fx, fy = m.W-1-x, y
			case 3:
				fx, fy = m.W-1-x, m.H-1-y
			case 4:
				fx, fy = x, m.H-1-y
			case 5:
				fx, fy = y, x
			case 6:
				fx, fy = y, m.H-1-x
			case 7:
				fx, fy = m.W-1-y, m.H-1-x
			case 8:
				fx, fy = m.W-1-y, x
			}
			from := 3 * (fy*m.W + fx)
			copy(out.Pix[i:i+3], m.Pix[from:from+3])
			i += 3
		}
	}
	return out
}
