package picture

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/image/tiff"
)

func load(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustDecode(t testing.TB, b []byte) *RGB {
	t.Helper()
	m, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func resized(t testing.TB, m *RGB, w, h int, f Filter) *RGB {
	t.Helper()
	m, err := m.Resize(w, h, f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func same(t *testing.T, got, want *RGB) {
	t.Helper()
	if got.W != want.W || got.H != want.H {
		t.Fatalf("got %d×%d pixels, want %d×%d", got.W, got.H, want.W, want.H)
	}
	for i := range want.Pix {
		if got.Pix[i] != want.Pix[i] {
			t.Fatalf("pixel (%d,%d) channel %d is %d, want %d", i/3%got.W, i/3/got.W, i%3, got.Pix[i],
				want.Pix[i])
		}
	}
}

// TestDecodeLikePillow checks that every file of testdata decodes to Pillow's pixels; testdata/make.py has
// its version.
func TestDecodeLikePillow(t *testing.T) {
	files, err := filepath.Glob("testdata/*.rgb.png")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d goldens, error %v", len(files), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".rgb.png")
		t.Run(name, func(t *testing.T) {
			same(t, mustDecode(t, load(t, name)), mustDecode(t, load(t, name+".rgb.png")))
		})
	}
}

// TestResizeLikePillow compares with Pillow 12.3; 11.3 and 12.1 give the same pixels, 13.0 others where the
// height shrinks much more than the width.
func TestResizeLikePillow(t *testing.T) {
	source := mustDecode(t, load(t, "444.jpg.rgb.png"))
	for name, f := range map[string]Filter{"bilinear": Bilinear(), "bicubic": Bicubic()} {
		for _, s := range [][2]int{{37, 11}, {13, 29}, {64, 50}, {9, 7}, {1, 1}, {120, 3}} {
			t.Run(fmt.Sprintf("%s-%dx%d", name, s[0], s[1]), func(t *testing.T) {
				same(t, resized(t, source, s[0], s[1], f),
					mustDecode(t, load(t, fmt.Sprintf("resize-%s-%dx%d.png", name, s[0], s[1]))))
			})
		}
	}
}

func TestResizeLaws(t *testing.T) {
	flat := NewRGB(31, 17)
	for i := range flat.Pix {
		flat.Pix[i] = 200
	}
	for _, f := range []Filter{Bilinear(), Bicubic()} {
		for i, v := range resized(t, flat, 7, 40, f).Pix {
			if v != 200 {
				t.Fatalf("a flat image has %d at %d after resizing", v, i)
			}
		}
		if m, err := flat.ResizeShort(10, f); err != nil || m.W != 18 || m.H != 10 {
			t.Errorf("the short side of 31×17 at 10 gives %v, %v, want 18×10", m, err)
		}
		if _, err := NewRGB(60000, 1).ResizeShort(16384, f); err == nil {
			t.Error("a strip may grow without bounds")
		}
		if _, err := NewRGB(1, 60000).Resize(16384, 1, f); err == nil {
			t.Error("what comes between may grow without bounds")
		}
		same(t, resized(t, flat, 31, 17, f), flat)
	}
}

func TestCropRoundsToEven(t *testing.T) {
	m := NewRGB(7, 9)
	for i := range m.Pix {
		m.Pix[i] = uint8(i / 3)
	}
	for _, tc := range []struct{ w, h, x, y int }{{7, 9, 0, 0}, {4, 4, 2, 2}, {2, 6, 2, 2}, {1, 1, 3, 4}} {
		c, err := m.Crop(tc.w, tc.h)
		if err != nil {
			t.Fatal(err)
		}
		if want := uint8(tc.y*7 + tc.x); c.Pix[0] != want {
			t.Errorf("crop %d×%d begins at pixel %d, want %d", tc.w, tc.h, c.Pix[0], want)
		}
	}
	if _, err := m.Crop(8, 1); err == nil {
		t.Error("a crop wider than the image is accepted")
	}
}

func TestDepthsThatPillowClips(t *testing.T) {
	grey := image.NewGray16(image.Rect(0, 0, 2, 1))
	grey.SetGray16(1, 0, color.Gray16{Y: 0x8034})
	wide := image.NewNRGBA64(image.Rect(0, 0, 1, 1))
	wide.SetNRGBA64(0, 0, color.NRGBA64{R: 0x1234, G: 0xabcd, B: 0xff00, A: 0x8000})
	for name, tc := range map[string]struct {
		img  image.Image
		want []uint8
	}{
		"grey16": {grey, []uint8{0, 0, 0, 0x80, 0x80, 0x80}},
		"rgba64": {wide, []uint8{0x12, 0xab, 0xff}},
	} {
		var b bytes.Buffer
		if err := png.Encode(&b, tc.img); err != nil {
			t.Fatal(err)
		}
		if m := mustDecode(t, b.Bytes()); !bytes.Equal(m.Pix, tc.want) {
			t.Errorf("%s: got %v, want %v", name, m.Pix, tc.want)
		}
	}
}

func TestPlanesAndBack(t *testing.T) {
	m := mustDecode(t, load(t, "444.jpg"))
	p := m.Planes()
	if p[m.W*m.H+5] != m.Pix[3*5+1] {
		t.Error("the second plane isn't green")
	}
	same(t, FromPlanes(p, m.W, m.H), m)
}

// TestTruncated checks that every truncated file is an error or, if only the end marker is missing, the same
// image: never a panic, never part of an image.
func TestTruncated(t *testing.T) {
	for _, name := range []string{"420.jpg", "progressive.jpg", "restart.jpg", "cmyk.jpg", "alpha.png",
		"lossy.webp", "lossless.webp", "24.bmp"} {
		b := load(t, name)
		whole := mustDecode(t, b)
		accepted := 0
		for n := range len(b) {
			m, err := Decode(b[:n])
			if err != nil {
				continue
			}
			accepted++
			same(t, m, whole)
		}
		if accepted > 16 {
			t.Errorf("%s: %d shortened files are accepted", name, accepted)
		}
	}
}

func TestRefused(t *testing.T) {
	jpg, pngFile := load(t, "420.jpg"), load(t, "alpha.png")
	huge := bytes.Clone(jpg)
	at := bytes.Index(huge, []byte{0xff, 0xc0})
	copy(huge[at+5:], "\xff\xff\xff\xff")
	tall := bytes.Clone(jpg)
	copy(tall[at+5:], "\x10\x00\x10\x00")
	wide := bytes.Clone(pngFile)
	copy(wide[16:], "\x00\x01\x00\x00\x00\x01\x00\x00")
	// The header's checksum must be valid for the size to be checked.
	copy(wide[29:], pngChecksum(wide[12:29]))
	arithmetic := bytes.Clone(jpg)
	arithmetic[at+1] = 0xc9
	for name, tc := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":      {nil, "an empty file"},
		"text":       {[]byte("GIF89a, or so"), "neither JPEG, PNG, WebP, BMP nor TIFF"},
		"huge jpeg":  {huge, "a JPEG file of 65535×65535 pixels is too large"},
		"huge png":   {wide, "a PNG file of 65536×65536 pixels is too large"},
		"little":     {tall, "a truncated JPEG file"},
		"cut":        {jpg[:len(jpg)/2], "a truncated JPEG file"},
		"arithmetic": {arithmetic, "isn't supported"},
	} {
		if _, err := Decode(tc.b); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}

func pngChecksum(b []byte) []byte {
	crc := ^uint32(0)
	for _, x := range b {
		crc ^= uint32(x)
		for range 8 {
			crc = crc>>1 ^ 0xedb88320&-(crc&1)
		}
	}
	crc = ^crc
	return []byte{byte(crc >> 24), byte(crc >> 16), byte(crc >> 8), byte(crc)}
}

// TestAgreesWithStandardLibrary compares with the standard library's decoder, which agrees up to a few levels
// if no chroma is interpolated.
func TestAgreesWithStandardLibrary(t *testing.T) {
	for _, name := range []string{"444.jpg", "grey.jpg", "rgb.jpg"} {
		b := load(t, name)
		img, err := jpeg.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		m := mustDecode(t, b)
		for i := range m.W * m.H {
			r, g, bl, _ := img.At(i%m.W, i/m.W).RGBA()
			for c, v := range [3]uint32{r, g, bl} {
				if d := int(v>>8) - int(m.Pix[3*i+c]); d > 4 || d < -4 {
					t.Fatalf("%s: pixel %d differs by %d levels", name, i, d)
				}
			}
		}
	}
}

func TestSizeText(t *testing.T) {
	for _, tc := range []struct {
		text string
		want Size
	}{{"224", Size{224, 224}}, {"240x320", Size{240, 320}}, {"none", Size{}}} {
		var s Size
		if err := s.UnmarshalText([]byte(tc.text)); err != nil || s != tc.want {
			t.Errorf("%q gives %v, error %v", tc.text, s, err)
		}
		if b, _ := s.MarshalText(); string(b) != tc.text {
			t.Errorf("%v is written %q", s, b)
		}
	}
	var listed Size
	if err := listed.UnmarshalText([]byte("[240, 320]")); err != nil || listed != (Size{240, 320}) {
		t.Errorf("a list gives %v, error %v", listed, err)
	}
	for _, bad := range []string{"[240]", "[1, 2, 3]", "[240, 320", "[]", "0", "-3", "12.5", "axb", "3x", "x",
		"20000", "10x10x10"} {
		if err := new(Size).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a size", bad)
		}
	}
}

// TestDamagedBytes checks that damaged bytes give an error or an image of the declared size.
func TestDamagedBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"420.jpg", "progressive.jpg", "restart-progressive.jpg", "cmyk.jpg",
		"440.jpg"} {
		b := load(t, name)
		for range 3000 {
			c := bytes.Clone(b)
			for range 1 + r.IntN(4) {
				c[r.IntN(len(c))] = byte(r.Uint32())
			}
			if m, err := decodeJPEG(c); err == nil && len(m.Pix) != 3*m.W*m.H {
				t.Fatalf("%s: an image of %d×%d has %d bytes", name, m.W, m.H, len(m.Pix))
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"420.jpg", "progressive.jpg", "restart.jpg", "ycck.jpg", "1x1.jpg",
		"alpha.png", "lossy.webp", "8.bmp"} {
		f.Add(load(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<12 {
			return
		}
		if f, err := recognise(b); err == nil {
			if w, h, err := f.size(b); err == nil && w > 0 && h > 0 && w > 1<<20/h {
				return // large images only cost time
			}
		}
		if m, err := Decode(b); err == nil && len(m.Pix) != 3*m.W*m.H {
			t.Fatalf("an image of %d×%d has %d bytes", m.W, m.H, len(m.Pix))
		}
	})
}

// TestRange reads 12-bit values of every kind of PNG and TIFF file with 16-bit channels against the formula
// in float64, and finds their range.
func TestRange(t *testing.T) {
	const w, h = 19, 7
	r := rand.New(rand.NewPCG(3, 4))
	grey, rgb, alpha := image.NewGray16(image.Rect(0, 0, w, h)), image.NewRGBA64(image.Rect(0, 0, w, h)),
		image.NewNRGBA64(image.Rect(0, 0, w, h))
	var values [3 * w * h]uint16
	for i := range values {
		values[i] = uint16(r.IntN(4096))
	}
	values[40] = 4095
	for i := range w * h {
		x, y, v := i%w, i/w, values[3*i:]
		grey.SetGray16(x, y, color.Gray16{Y: v[0]})
		rgb.SetRGBA64(x, y, color.RGBA64{v[0], v[1], v[2], 0xffff})
		alpha.SetNRGBA64(x, y, color.NRGBA64{v[0], v[1], v[2], uint16(i)})
	}
	for name, tc := range map[string]struct {
		img      image.Image
		channels int
		tiff     bool
	}{"grey": {grey, 1, false}, "rgb": {rgb, 3, false}, "alpha": {alpha, 3, false}, "tiff": {rgb, 3, true},
		"grey tiff": {grey, 1, true}} {
		var b bytes.Buffer
		if err := png.Encode(&b, tc.img); err != nil {
			t.Fatal(err)
		}
		if tc.tiff {
			b.Reset()
			if err := tiff.Encode(&b, tc.img, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, white := range []int{4095, 2000, 65534} {
			m, above, err := DecodeRange(b.Bytes(), white)
			if err != nil {
				t.Fatal(name, err)
			}
			cut := 0
			for i := range w * h {
				over := false
				for k := range 3 {
					v := int(values[3*i+min(k, tc.channels-1)])
					over = over || v > white
					want := math.Floor(math.Min(float64(v), float64(white))*255/float64(white) + 0.5)
					if float64(m.Pix[3*i+k]) != want {
						t.Fatalf("%s: %d of white %d is %d, want %v", name, v, white, m.Pix[3*i+k], want)
					}
				}
				if over {
					cut++
				}
			}
			if above != cut {
				t.Errorf("%s: %d pixels are above %d, want %d", name, above, white, cut)
			}
		}
		d, ok := DepthOf(b.Bytes())
		if !ok || White(d) != 4095 {
			t.Errorf("%s: depth %+v, white %d", name, d, White(d))
		}
	}
	for _, c := range []struct{ largest, bits, want int }{{255, 0, 255}, {900, 0, 1023}, {1800, 0, 4095},
		{1800, 11, 2047}, {5000, 12, 16383}, {16384, 0, 32767}, {40000, 0, 65535}, {65535, 12, 65535}} {
		if got := White(Depth{c.largest, c.bits}); got != c.want {
			t.Errorf("white of %+v is %d", c, got)
		}
	}
	if _, ok := DepthOf(load(t, "alpha.png")); ok {
		t.Error("a file of 8-bit channels has a depth")
	}
}

// TestKind tells files apart by their first bytes, whatever their names.
func TestKind(t *testing.T) {
	for want, b := range map[string]string{
		"JPEG": "\xff\xd8\xff\xe0", "TIFF": "II*\x00", "HEIC": "\x00\x00\x00\x18ftypheic",
		"AVIF": "\x00\x00\x00\x18ftypavif", "GIF": "GIF89a", "SVG": "<?xml version='1.0'?>\n<svg>",
		"NumPy": "\x93NUMPY\x01",
		"DICOM": strings.Repeat("\x00", 128) + "DICM", "Netpbm": "P6\n3 2", "JPEG XL": "\xff\x0a",
		"Git LFS pointer": "version https://git-lfs.github.com/spec/v1\n", "HTML page": "\n<!DOCTYPE " +
			"html>", "": "hello",
	} {
		if kind, _, read := Kind("x", []byte(b)); kind != want || read != (want == "JPEG" || want == "TIFF") {
			t.Errorf("%q is %q, read: %v", b, kind, read)
		}
	}
	if kind, isPicture, read := Kind("x.NEF", []byte("II*\x00")); kind != "camera RAW" || !isPicture || read {
		t.Error("a camera's raw file is taken for TIFF")
	}
	if _, err := Decode([]byte("version https://git-lfs.github.com/spec/v1\noid")); err == nil ||
		!strings.Contains(err.Error(), "git lfs pull") {
		t.Errorf("a pointer of Git LFS: %v", err)
	}
}
