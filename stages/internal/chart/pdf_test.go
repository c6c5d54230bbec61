package chart

import (
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
)

// pdfBudget is the largest size of a chart's PDF file in bytes.
const pdfBudget = 25_000

// A parsed is a PDF file: its objects by number, streams decompressed.
type parsed struct {
	objects map[int]string // without stream
	streams map[int][]byte
}

var (
	pdfObject = regexp.MustCompile(`(?s)^(\d+) 0 obj\n(.*)$`)
	pdfRef    = regexp.MustCompile(`/(\w+) (\d+) 0 R`)
	pdfLength = regexp.MustCompile(`/Length (\d+)>>$`)
)

// parsePDF reads a PDF file by its table of objects, and checks that each is where the table says.
func parsePDF(t testing.TB, b []byte) parsed {
	t.Helper()
	p := parsed{map[int]string{}, map[int][]byte{}}
	i := bytes.LastIndex(b, []byte("startxref\n"))
	at, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(string(b[i+10:]), "%%EOF\n")))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b[at:]), "\n")
	if lines[0] != "xref" {
		t.Fatalf("no table of objects but %q", lines[0])
	}
	for n := 1; strings.HasSuffix(lines[2+n], " n "); n++ {
		offset, _ := strconv.Atoi(lines[2+n][:10])
		text := b[offset:]
		head, rest, found := bytes.Cut(text, []byte("stream\n"))
		end := bytes.Index(text, []byte("\nendobj"))
		if !found || len(head) > end {
			head = text[:end]
		}
		m := pdfObject.FindSubmatch(head)
		if m == nil || string(m[1]) != fmt.Sprint(n) {
			t.Fatalf("object %d is at %q", n, head)
		}
		p.objects[n] = string(m[2])
		if length := pdfLength.FindStringSubmatch(p.objects[n]); length != nil {
			k, _ := strconv.Atoi(length[1])
			if !bytes.HasPrefix(rest[k:], []byte("\nendstream")) {
				t.Fatalf("stream %d isn't %d bytes", n, k)
			}
			p.streams[n] = rest[:k]
			if strings.Contains(p.objects[n], "/FlateDecode") {
				z, err := zlib.NewReader(bytes.NewReader(rest[:k]))
				if err == nil {
					p.streams[n], err = io.ReadAll(z)
				}
				if err != nil {
					t.Fatalf("stream %d: %v", n, err)
				}
			}
		}
	}
	return p
}

// refs returns the objects that an object refers to, by their names there.
func (p parsed) refs(object int) map[string]int {
	refs := map[string]int{}
	for _, m := range pdfRef.FindAllStringSubmatch(p.objects[object], -1) {
		refs[m[1]], _ = strconv.Atoi(m[2])
	}
	return refs
}

// A written is a text of a page: where it starts, and its width by the font's widths in points.
type written struct {
	text       string
	x, y, wide float64
}

var (
	pdfText = regexp.MustCompile(
		`BT /(F\d+) ([\d.]+) Tf ([-\d.]+) ([-\d.]+) \S+ \S+ ([-\d.]+) ([-\d.]+) Tm \[(.*?)\] TJ ET`)
	pdfChar  = regexp.MustCompile(`<([0-9a-f]{4})><([0-9a-f]+)>\n`)
	pdfArray = regexp.MustCompile(`/W\[0\[(.*?)\]\]`)
)

// texts returns the texts of the page.
func (p parsed) texts(t testing.TB) (list []written) {
	t.Helper()
	page := p.refs(3)
	for _, m := range pdfText.FindAllStringSubmatch(string(p.streams[page["Contents"]]), -1) {
		refs := p.refs(page[m[1]])
		chars := map[string]string{}
		for _, c := range pdfChar.FindAllStringSubmatch(string(p.streams[refs["ToUnicode"]]), -1) {
			raw, _ := hex.DecodeString(c[2])
			var units []uint16
			for i := 0; i < len(raw); i += 2 {
				units = append(units, be.Uint16(raw[i:]))
			}
			chars[c[1]] = string(utf16.Decode(units))
		}
		descendant := 0
		fmt.Sscanf(p.objects[page[m[1]]][strings.Index(p.objects[page[m[1]]], "/DescendantFonts["):],
			"/DescendantFonts[%d", &descendant)
		widths := strings.Fields(pdfArray.FindStringSubmatch(p.objects[descendant])[1])
		w := written{}
		size, _ := strconv.ParseFloat(m[2], 64)
		w.x, _ = strconv.ParseFloat(m[5], 64)
		w.y, _ = strconv.ParseFloat(m[6], 64)
		for part := range strings.SplitSeq(m[7], "<") {
			codes, kern, _ := strings.Cut(part, ">")
			for i := 0; i+4 <= len(codes); i += 4 {
				code, _ := strconv.ParseInt(codes[i:i+4], 16, 32)
				w.text += chars[codes[i:i+4]]
				advance, _ := strconv.ParseFloat(widths[code], 64)
				w.wide += advance * size / 1000
			}
			if kern != "" {
				k, _ := strconv.ParseFloat(kern, 64)
				w.wide -= k * size / 1000
			}
		}
		list = append(list, w)
	}
	return list
}

// TestPDFText checks that a PDF has the texts of the SVG, in the same order and of the same width, that it is
// small, and the same twice.
func TestPDFText(t *testing.T) {
	for _, n := range []int{2, 8, 20} {
		for kind, f := range figures(n) {
			b := f.PDF()
			if len(b) > pdfBudget {
				t.Errorf("%s of %d: the PDF has %d bytes", kind, n, len(b))
			}
			if !bytes.Equal(b, f.PDF()) {
				t.Errorf("%s of %d: written twice, the PDF differs", kind, n)
			}
			got, want := parsePDF(t, b).texts(t), textsOf(t, f.SVG())
			if len(got) != len(want) {
				t.Fatalf("%s of %d: %d texts, the SVG has %d", kind, n, len(got), len(want))
			}
			for i, w := range got {
				if w.text != want[i].text {
					t.Errorf("%s of %d: the text %q, in the SVG %q", kind, n, w.text, want[i].text)
				}
				wide := max(want[i].right-want[i].left, want[i].bottom-want[i].top)
				if d := math.Abs(w.wide - wide); d > 0.01*wide+0.02 && wide > 12 {
					t.Errorf("%s of %d: %q is %.2f points wide, in the SVG %.2f", kind, n, w.text,
						w.wide, wide)
				}
			}
		}
	}
}

// TestPDFCharacters checks names of any script: characters that the font lacks, composed ones, and beyond 16
// bits.
func TestPDFCharacters(t *testing.T) {
	names := []string{"α2β1", "Ångström ﬁé", "漢字", "𝒜(x) \\)", strings.Repeat("é", 300), ""}
	for r := rune(0x100); r < 0x180; r++ { // more than a block of the CMap
		names[len(names)-1] += string(r)
	}
	m := &HeatMap{Rows: names, Columns: []string{"x"}}
	for range names {
		m.Values = append(m.Values, []float64{1})
	}
	p := parsePDF(t, m.Figure().PDF())
	var got []string
	for _, w := range p.texts(t) {
		got = append(got, w.text)
	}
	for _, name := range names {
		if !slices.Contains(got, name) {
			t.Errorf("%q isn't among the texts %q", name, got)
		}
	}
}

// TestCut compares the glyphs of a cut font with those of the whole one: a letter as it is but for its
// instructions, a composed letter with parts that are there.
func TestCut(t *testing.T) {
	whole := plot.DefaultTextHandler.(text.Plain).Fonts.Lookup(words(labelSize).Font, labelSize)
	glyphs := []int{0}
	s := &subset{font: whole.Face, codes: map[rune]int{}}
	for _, r := range "aéa" {
		glyphs = append(glyphs, int(s.glyph(r)))
	}
	var source bytes.Buffer
	if _, err := whole.Face.WriteSourceTo(nil, &source); err != nil {
		t.Fatal(err)
	}
	file, widths, err := cut(source.Bytes(), glyphs)
	if err != nil {
		t.Fatal(err)
	}
	if len(widths) != 6 || widths[1] != widths[3] || widths[1] != widths[2] {
		t.Errorf("advances %v: want those of 4 glyphs and of the accent and letter of é", widths)
	}
	// Only what a PDF needs, hence no cmap: read it by hand.
	tables := map[string][]byte{}
	for i := range int(be.Uint16(file[4:])) {
		e := file[12+16*i:]
		tables[string(e[:4])] = file[be.Uint32(e[8:]):][:be.Uint32(e[12:])]
	}
	at := func(g int) []byte {
		return tables["glyf"][be.Uint32(tables["loca"][4*g:]):be.Uint32(tables["loca"][4*g+4:])]
	}
	if !bytes.Equal(at(1), at(3)) || be.Uint16(at(1)) == 0 || int16(be.Uint16(at(2))) >= 0 {
		t.Error("the letters a differ, or é isn't composed")
	}
	if part := be.Uint16(at(2)[12:]); part != 4 && part != 1 {
		t.Errorf("é is composed of glyph %d", part)
	}
	if _, _, err := cut(source.Bytes()[:5000], glyphs); err == nil {
		t.Error("half a font is taken")
	}
}
