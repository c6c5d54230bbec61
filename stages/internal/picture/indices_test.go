package picture

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"os"
	"strings"
	"testing"
)

// TestNearest compares masks of other sizes with Pillow's.
func TestNearest(t *testing.T) {
	type plane struct {
		W, H   int
		Pixels []int
	}
	var golden struct {
		plane
		Resized []plane
	}
	b, err := os.ReadFile("testdata/nearest.json")
	if err == nil {
		err = json.Unmarshal(b, &golden)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := NewRGB(golden.W, golden.H)
	for i, v := range golden.Pixels {
		m.Pix[3*i], m.Pix[3*i+1], m.Pix[3*i+2] = uint8(v), uint8(v), uint8(v)
	}
	for _, want := range golden.Resized {
		got, err := m.Resize(want.W, want.H, Nearest())
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range want.Pixels {
			if int(got.Pix[3*i]) != v {
				t.Errorf("%d×%d: pixel %d is %d, want %d", want.W, want.H, i, got.Pix[3*i], v)
				break
			}
		}
	}
}

// TestDecodeIndices reads the same numbers from PNG files of every kind.
func TestDecodeIndices(t *testing.T) {
	want := []uint8{0, 1, 15, 0}
	r := image.Rect(0, 0, 2, 2)
	var palette color.Palette
	for range 16 {
		palette = append(palette, color.NRGBA{9, 9, 9, 255}) // colours don't count
	}
	paletted, grey, deep := image.NewPaletted(r, palette), image.NewGray(r), image.NewGray16(r)
	rgb, alpha, rgb16 := image.NewRGBA(r), image.NewNRGBA(r), image.NewNRGBA64(r)
	for i, v := range want {
		x, y := i%2, i/2
		paletted.SetColorIndex(x, y, v)
		grey.SetGray(x, y, color.Gray{Y: v})
		deep.SetGray16(x, y, color.Gray16{Y: uint16(v)})
		rgb.SetRGBA(x, y, color.RGBA{0, v, 0, 255})
		alpha.SetNRGBA(x, y, color.NRGBA{0, 0, v, uint8(i)})
		rgb16.SetNRGBA64(x, y, color.NRGBA64{uint16(v), 0, 0, 1 << 15})
	}
	for name, img := range map[string]image.Image{"paletted": paletted, "grey": grey, "deep": deep,
		"rgb": rgb, "alpha": alpha, "rgb16": rgb16} {
		var b bytes.Buffer
		if err := png.Encode(&b, img); err != nil {
			t.Fatal(err)
		}
		m, err := DecodeIndices(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range want {
			if m.Pix[i] != uint16(v) {
				t.Errorf("%s: pixel %d is %d, want %d", name, i, m.Pix[i], v)
			}
		}
		for _, cut := range []int{0, 5, 20, b.Len() / 2} {
			if _, err := DecodeIndices(b.Bytes()[:cut]); err == nil {
				t.Errorf("%s: %d of %d bytes are read", name, cut, b.Len())
			}
		}
	}
	if _, err := DecodeIndices([]byte("\xff\xd8\xff")); err == nil || !strings.Contains(err.Error(),
		"a JPEG file") {
		t.Errorf("a JPEG file: %v", err)
	}
}
