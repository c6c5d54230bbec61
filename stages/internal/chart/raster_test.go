package chart

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg"
	"image/png"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/picture"
)

var pdfPalette = regexp.MustCompile(`/Indexed/DeviceRGB \d+<([0-9a-f]*)>`)

// imagesOf returns the images of a PDF file: their pixels, as RGB.
func (p parsed) imagesOf(t testing.TB) (list []*image.RGBA) {
	t.Helper()
	for n := 1; n <= len(p.objects); n++ {
		head := p.objects[n]
		if !strings.Contains(head, "/Subtype/Image") || strings.Contains(head, "/DeviceGray") {
			continue
		}
		number := func(name string) int {
			m := regexp.MustCompile("/" + name + ` (\d+)`).FindStringSubmatch(head)
			v, _ := strconv.Atoi(m[1])
			return v
		}
		w, h := number("Width"), number("Height")
		img := image.NewRGBA(image.Rect(0, 0, w, h))
		list = append(list, img)
		if strings.Contains(head, "/DCTDecode") {
			m, _, err := image.Decode(bytes.NewReader(p.streams[n]))
			if err != nil || m.Bounds() != img.Rect {
				t.Fatalf("object %d: %v", n, err)
			}
			continue
		}
		// A PNG file with the same lines is read by image/png.
		kind, more := byte(trueColour), []chunk(nil)
		space := p.objects[p.refs(n)["ColorSpace"]]
		if m := pdfPalette.FindStringSubmatch(space); m != nil {
			palette := make([]byte, len(m[1])/2)
			fmt.Sscanf(m[1], "%x", &palette)
			kind, more = indexed, []chunk{{"PLTE", palette}}
		}
		m, err := png.Decode(bytes.NewReader(pngFile(w, h, kind, deflated(p.streams[n]), more...)))
		if err != nil {
			t.Fatalf("object %d: %v", n, err)
		}
		for i := range w * h {
			img.Set(i%w, i/w, m.At(i%w, i/w))
		}
	}
	return list
}

// TestRasters checks that files have images in their own pixels, each once, and that a PNG has them where
// they are, with pixels of one size.
func TestRasters(t *testing.T) {
	palette := []color.NRGBA{{255, 255, 255, 255}, {200, 30, 10, 255}, {0, 60, 120, 255}}
	levels := make([]uint8, 30)
	photo := &picture.RGB{W: 8, H: 8, Pix: make([]uint8, 192)}
	for i := range levels {
		levels[i] = uint8(i * i % 3)
	}
	for i := range photo.Pix {
		photo.Pix[i] = uint8(i * 7)
	}
	m, again := Indexed(6, 5, levels, palette), Indexed(6, 5, levels, palette)
	p := Page{Width: 100, Height: 60}
	p.Image(Rect{5, 5, 30, 25}, m)
	p.Image(Rect{40, 5, 30, 25}, again)
	p.Image(Rect{40, 32, 24, 24}, Photo(photo))
	p.Text(5, 50, TextFont, Ink, Left, "below")
	f := p.Figure()

	parsed := parsePDF(t, f.PDF())
	images := parsed.imagesOf(t)
	if len(images) != 2 || images[0].Rect.Dx() != 6 || images[1].Rect.Dx() != 8 {
		t.Fatalf("the PDF has %d images", len(images))
	}
	for i, l := range levels {
		if got, want := images[0].At(i%6, i/6), palette[l]; got != (color.RGBA{want.R, want.G, want.B, 255}) {
			t.Errorf("pixel %d of the map is %v, want %v", i, got, want)
		}
	}
	for i := range 64 {
		if got := images[1].RGBAAt(i%8, i/8); !bytes.Equal([]byte{got.R, got.G, got.B}, photo.Pix[3*i:][:3]) {
			t.Errorf("pixel %d of the photograph is %v", i, got)
		}
	}
	if texts := parsed.texts(t); len(texts) != 1 || texts[0].text != "below" || texts[0].y != 10 {
		t.Errorf("texts %v", texts)
	}

	svg := string(f.SVG())
	urls := regexp.MustCompile(`href="data:image/png;base64,([^"]*)"`).FindAllStringSubmatch(svg, -1)
	if len(urls) != 2 || strings.Count(svg, `<use href="#i0" x="35" y="0"/>`) != 1 {
		t.Fatalf("%d images in %s", len(urls), svg)
	}
	b, err := base64.StdEncoding.DecodeString(urls[0][1])
	if err != nil {
		t.Fatal(err)
	}
	if got, err := png.Decode(bytes.NewReader(b)); err != nil || got.Bounds().Dx() != 6 ||
		got.At(1, 0) != color.Color(color.RGBA{200, 30, 10, 255}) {
		t.Errorf("the map in the SVG is %v, %v", got, err)
	}

	img, err := png.Decode(bytes.NewReader(f.PNGAt(144)))
	if err != nil || img.Bounds().Dx() != 200 {
		t.Fatal(err)
	}
	for y := range 50 {
		for x := range 60 {
			want := palette[levels[y/10*6+x/10]]
			if r, g, b, _ := img.At(10+x, 10+y).RGBA(); uint8(r>>8) != want.R || uint8(g>>8) != want.G ||
				uint8(b>>8) != want.B {
				t.Fatalf("pixel %d, %d of the map isn't %v", x, y, want)
			}
		}
	}
}

// TestTransparent checks that colours of a palette that let the ground shine through do so in all files.
func TestTransparent(t *testing.T) {
	m := Indexed(2, 1, []uint8{0, 1}, []color.NRGBA{{0, 0, 0, 0}, {255, 0, 0, 128}})
	p := Page{Width: 20, Height: 10}
	p.Fill(Rect{0, 0, 20, 10}, color.RGBA{0, 0, 255, 255})
	p.Image(Rect{0, 0, 20, 10}, m)
	img, err := png.Decode(bytes.NewReader(p.Figure().PNGAt(72)))
	if err != nil {
		t.Fatal(err)
	}
	for x, want := range map[int]color.RGBA{5: {0, 0, 255, 255}, 15: {128, 0, 127, 255}} {
		if got := color.RGBAModel.Convert(img.At(x, 5)); got != want {
			t.Errorf("at %d is %v, want %v", x, got, want)
		}
	}
	for _, o := range parsePDF(t, p.Figure().PDF()).objects {
		if strings.Contains(o, "/ColorSpace ") && !strings.Contains(o, "/SMask") {
			t.Error("the PDF's image has no opacity")
		}
	}
	if b, err := png.Decode(bytes.NewReader(m.png())); err != nil || b.At(1, 0) !=
		color.Color(color.NRGBA{255, 0, 0, 128}) {
		t.Errorf("the SVG's image is %v, %v", b, err)
	}
}

// TestPhotographs checks that a flat image is kept as it is, and a photograph nearly.
func TestPhotographs(t *testing.T) {
	for kind, lossless := range map[string]bool{"flat": true, "photograph": false} {
		const side = 64
		m := &picture.RGB{W: side, H: side, Pix: make([]uint8, 3*side*side)}
		for i := range m.Pix {
			if m.Pix[i] = uint8(i / 3 / side * 3); kind == "photograph" {
				m.Pix[i] += uint8(i * 7919 % 1009 * i % 23)
			}
		}
		r := Photo(m)
		if (r.file == nil) != lossless {
			t.Errorf("%s: a JPEG of %d bytes, or lines of %d", kind, len(r.file), len(r.lines))
		}
		if r.file == nil {
			continue
		}
		got, _, err := image.Decode(bytes.NewReader(r.file))
		if err != nil {
			t.Fatal(err)
		}
		off := 0
		for i := range side * side {
			red, _, _, _ := got.At(i%side, i/side).RGBA()
			off += max(int(red>>8)-int(m.Pix[3*i]), int(m.Pix[3*i])-int(red>>8))
		}
		if mean := float64(off) / float64(side*side); mean > 8 {
			t.Errorf("the JPEG is off by %.1f of 255", mean)
		}
	}
}
