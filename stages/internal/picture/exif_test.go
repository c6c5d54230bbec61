package picture

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"
)

// exif returns an EXIF block with an orientation after another tag.
func exif(order binary.AppendByteOrder, magic string, orientation uint16) []byte {
	b := order.AppendUint32([]byte(magic), 8)
	b = order.AppendUint16(b, 2)
	for _, e := range [][2]uint16{{0x0100, 7}, {tagOrientation, orientation}} {
		b = order.AppendUint16(b, e[0])
		b = order.AppendUint16(b, 3)
		b = order.AppendUint32(b, 1)
		b = order.AppendUint16(b, e[1])
		b = order.AppendUint16(b, 0)
	}
	return order.AppendUint32(b, 0)
}

// withEXIF inserts an EXIF block into a file where writers put it.
func withEXIF(file, block []byte) []byte {
	switch {
	case file[0] == 0xff:
		block = slices.Concat([]byte("Exif\x00\x00"), block)
		return slices.Concat(file[:2],
			binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(block)+2)), block, file[2:])
	case file[0] == 0x89:
		chunk := append([]byte("eXIf"), block...)
		chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk))
		const header = 8 + 25 // the signature and IHDR
		return slices.Concat(file[:header], binary.BigEndian.AppendUint32(nil, uint32(len(block))), chunk,
			file[header:])
	}
	return slices.Concat(file, binary.LittleEndian.AppendUint32([]byte("EXIF"), uint32(len(block))), block)
}

// TestOriented checks the positions of pixels for each orientation, as in Pillow's exif_transpose.
func TestOriented(t *testing.T) {
	m := NewRGB(3, 2)
	for i, c := range "abcdef" {
		m.Pix[3*i] = uint8(c)
	}
	for o, want := range []string{"abc def", "abc def", "cba fed", "fed cba", "def abc", "ad be cf",
		"da eb fc", "fc eb da", "cf be ad", "abc def"} {
		got, r := "", m.Oriented(o)
		for i := 0; i < len(r.Pix); i += 3 {
			if i > 0 && i/3%r.W == 0 {
				got += " "
			}
			got += string(rune(r.Pix[i]))
		}
		if got != want {
			t.Errorf("orientation %d: %s, want %s", o, got, want)
		}
	}
}

// TestOrientation checks the orientations read from files of every format, and of damaged blocks.
func TestOrientation(t *testing.T) {
	for _, name := range []string{"420.jpg", "progressive.jpg", "paletted.png", "lossy.webp", "24.bmp"} {
		file := load(t, name)
		if o := Orientation(file); o != 1 {
			t.Errorf("%s without a block: %d", name, o)
		}
		for said := range uint16(10) {
			want := int(said)
			if said < 1 || said > 8 || name == "24.bmp" {
				want = 1
			}
			for _, block := range [][]byte{exif(binary.LittleEndian, "II*\x00", said),
				exif(binary.BigEndian, "MM\x00*", said)} {
				changed := withEXIF(file, block)
				if o := Orientation(changed); o != want {
					t.Errorf("%s says %d: %d", name, said, o)
				}
				same(t, mustDecode(t, changed), mustDecode(t, file))
				for n := range len(block) - 4 {
					if o := Orientation(withEXIF(file, block[:n])); o != 1 && n < 36 {
						t.Errorf("%s with %d bytes of the block: %d", name, n, o)
					}
				}
			}
		}
	}
	far := exif(binary.LittleEndian, "II*\x00", 6)
	copy(far[4:], "\xff\xff\xff\xff")
	if o := Orientation(withEXIF(load(t, "420.jpg"), far)); o != 1 {
		t.Errorf("a directory beyond the block: %d", o)
	}
}

// FuzzOrientation checks that reading the orientation never panics or returns another value than 1 to 8.
func FuzzOrientation(f *testing.F) {
	for _, name := range []string{"1x1.jpg", "bit.png", "lossless.webp"} {
		f.Add(withEXIF(load(f, name), exif(binary.BigEndian, "MM\x00*", 6)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if o := Orientation(b); o < 1 || o > 8 {
			t.Errorf("orientation %d", o)
		}
	})
}
