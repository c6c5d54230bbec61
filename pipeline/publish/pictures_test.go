package publish

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"
)

// svgOf returns an SVG with a map of the given grey levels, 20 × 20 of each.
func svgOf(t *testing.T, x string, levels ...uint8) []byte {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, 20*len(levels), 20))
	for i := range m.Pix {
		m.Pix[i] = levels[i%m.Stride/20]
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return []byte(`<svg><image x="` + x + `" href="data:image/png;base64,` +
		base64.StdEncoding.EncodeToString(b.Bytes()) + `"/></svg>`)
}

// TestUnlikeSVG checks that maps in an SVG are compared by their pixels.
func TestUnlikeSVG(t *testing.T) {
	a := svgOf(t, "10.02", 10, 200)
	torn := bytes.Replace(a, []byte("base64,"), []byte("base64,iVBO"), 1)
	for _, tc := range []struct {
		b    []byte
		want string
	}{
		{svgOf(t, "10.4", 10, 201), ""},
		{svgOf(t, "11", 10, 200), "another drawing"},
		{svgOf(t, "10.02", 200, 10), "a map is 100 % of the pixels off by more than 8 of 255"},
		{svgOf(t, "10.02", 10, 200, 10), "a map is 60×20 pixels instead of 40×20"},
		{torn, "a map is unreadable"},
		{append(bytes.Clone(a), svgOf(t, "10.02", 1)...), "another drawing"},
	} {
		if words, _, _ := unlike("x.svg", a, tc.b); words != tc.want {
			t.Errorf("%.60q: %q, want %q", tc.b, words, tc.want)
		}
	}
}

// pdfOf returns a file with streams as runexp writes them.
func pdfOf(streams ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.5\n")
	for i, s := range streams {
		var data bytes.Buffer
		z := zlib.NewWriter(&data)
		z.Write([]byte(s))
		z.Close()
		kind := []string{"", "/Subtype/Image"}[i%2]
		fmt.Fprintf(&b, "1 0 obj\n<<%s/Filter/FlateDecode/Length %d>>stream\n%s\nendstream\nendobj\n", kind,
			data.Len(), data.Bytes())
	}
	b.WriteString("xref\ntrailer\nstartxref\n9\n%%EOF\n")
	return b.Bytes()
}

// TestUnlikePDF checks what of a PDF counts as reproduced: lines moved by less than half a point and pixels
// of nearly the same grey, but no other text, image or number of images.
func TestUnlikePDF(t *testing.T) {
	image := strings.Repeat("\x10\xf0\x80", 100)
	a := pdfOf("10.02 20 m 30 40 l S", image)
	for _, tc := range []struct {
		b    []byte
		same bool
	}{
		{pdfOf("10.03 20 m 30 40.1 l S", image), true},
		{pdfOf("10.02 20 m 30 40 l S", "\x11"+image[1:]), true},
		{pdfOf("10.02 20 m 30 41 l S", image), false},
		{pdfOf("10.02 20 m 30 40 l f", image), false},
		{pdfOf("10.02 20 m 30 40 l S", strings.Repeat("\x90\xf0\x80", 100)), false},
		{pdfOf("10.02 20 m 30 40 l S"), false},
		{a[:40], false},
		{bytes.Replace(a, []byte("Length "), []byte("Length 9"), 1), false},
	} {
		if words, _, _ := unlike("x.pdf", a, tc.b); (words == "") != tc.same {
			t.Errorf("%.60q: %q", tc.b, words)
		}
	}
	marked, err := addMark("x.pdf", a, "a caption")
	if err != nil {
		t.Fatal(err)
	}
	if words, _, _ := unlike("x.pdf", a, marked); words != "" {
		t.Errorf("the mark changes the file: %s", words)
	}
}
