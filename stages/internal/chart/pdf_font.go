package chart

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/font"
)

// A subset is a font of a PDF file with the glyphs of the characters that occur, in the order in which they
// do: glyph 0 is that of characters which the font lacks, glyph i+1 that of runes[i].
type subset struct {
	font  *opentype.Font
	name  string
	buf   sfnt.Buffer
	runes []rune
	codes map[rune]int
}

func newSubset(f font.Face) *subset {
	name := string(f.Font.Typeface) + string(f.Font.Variant)
	if f.Font.Weight == boldWeight {
		name += "-Bold"
	}
	return &subset{font: f.Face, name: name, codes: map[rune]int{}}
}

// show returns a text as the operand of TJ: codes of two bytes, kerned as in the width of the text.
func (s *subset) show(txt string) string {
	var b strings.Builder
	em := fixed.Int26_6(s.font.UnitsPerEm())
	before, first := sfnt.GlyphIndex(0), true
	b.WriteString("<")
	for _, r := range txt {
		code, known := s.codes[r]
		if !known {
			s.runes = append(s.runes, r)
			code = len(s.runes)
			s.codes[r] = code
		}
		glyph := s.glyph(r)
		if !first {
			kern, err := s.font.Kern(&s.buf, before, glyph, em, 0)
			if err == nil && kern != 0 {
				fmt.Fprintf(&b, ">%d<", -1000*int(kern)/int(em))
			}
		}
		fmt.Fprintf(&b, "%04x", code)
		before, first = glyph, false
	}
	b.WriteString(">")
	return b.String()
}

// glyph returns the font's number of a character's glyph, 0 if it has none.
func (s *subset) glyph(r rune) sfnt.GlyphIndex {
	g, err := s.font.GlyphIndex(&s.buf, r)
	if err != nil {
		return 0
	}
	return g
}

// write adds the font to a file and returns its object.
func (s *subset) write(d *document) int {
	var source bytes.Buffer
	if _, err := s.font.WriteSourceTo(nil, &source); err != nil {
		panic(err) // the fonts are embedded
	}
	glyphs := []int{0}
	for _, r := range s.runes {
		glyphs = append(glyphs, int(s.glyph(r)))
	}
	file, widths, err := cut(source.Bytes(), glyphs)
	if err != nil {
		panic(err) // the fonts are embedded
	}
	em := int(s.font.UnitsPerEm())
	var advances []string
	for _, w := range widths[:len(s.runes)+1] {
		advances = append(advances, thousandth(1000*float64(w)/float64(em)))
	}
	// Programs that join files distinguish fonts by their names: six letters stand for the glyphs in this
	// one.
	tag, sum := make([]byte, 6), crc32.ChecksumIEEE(file)
	for i := range tag {
		tag[i], sum = 'A'+byte(sum%26), sum/26
	}
	name := string(tag) + "+" + s.name
	metrics, err := s.font.Metrics(&s.buf, fixed.I(1000), 0)
	if err != nil {
		panic(err)
	}
	box, err := s.font.Bounds(&s.buf, fixed.I(1000), 0)
	if err != nil {
		panic(err)
	}
	descriptor := d.add(fmt.Sprintf("<</Type/FontDescriptor/FontName/%s/Flags 4/ItalicAngle 0/StemV 80"+
		"/Ascent %d/Descent %d/CapHeight %d/FontBBox[%d %d %d %d]/FontFile2 %d 0 R>>", name,
		metrics.Ascent.Round(), -metrics.Descent.Round(), metrics.CapHeight.Round(), box.Min.X.Floor(),
		-box.Max.Y.Ceil(), box.Max.X.Ceil(), -box.Min.Y.Floor(),
		d.stream(fmt.Sprintf("/Length1 %d", len(file)), file)))
	descendant := d.add(fmt.Sprintf("<</Type/Font/Subtype/CIDFontType2/BaseFont/%s/CIDSystemInfo"+
		"<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/CIDToGIDMap/Identity/FontDescriptor %d 0 R"+
		"/W[0[%s]]>>", name, descriptor, strings.Join(advances, " ")))
	return d.add(fmt.Sprintf("<</Type/Font/Subtype/Type0/BaseFont/%s/Encoding/Identity-H"+
		"/DescendantFonts[%d 0 R]/ToUnicode %d 0 R>>", name, descendant, d.stream("", s.characters())))
}

// characters returns the CMap that says which character a code is.
func (s *subset) characters() []byte {
	var b bytes.Buffer
	b.WriteString("/CIDInit/ProcSet findresource begin 12 dict begin begincmap" +
		"/CMapName/Adobe-Identity-UCS def/CMapType 2 def" +
		"/CIDSystemInfo<</Registry(Adobe)/Ordering(UCS)/Supplement 0>>def\n" +
		"1 begincodespacerange<0000><ffff>endcodespacerange\n")
	for i, part := range slices.Collect(slices.Chunk(s.runes, 100)) { // the most that a block may have
		fmt.Fprintf(&b, "%d beginbfchar\n", len(part))
		for k, r := range part {
			fmt.Fprintf(&b, "<%04x><", 100*i+k+1)
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, "%04x", u)
			}
			b.WriteString(">\n")
		}
		b.WriteString("endbfchar\n")
	}
	b.WriteString("endcmap CMapName currentdict/CMap defineresource pop end end")
	return b.Bytes()
}

var errFont = errors.New("chart: not a TrueType font")

// The tables of a TrueType font are described in Apple's "TrueType Reference Manual"; bytes are big-endian.
var be = binary.BigEndian

// cut returns a TrueType font with the given glyphs of another one, behind them those that they are composed
// of, without instructions for coarse grids, and the advances of all in units of the em. The same glyph may
// be asked for twice.
func cut(ttf []byte, glyphs []int) (file []byte, widths []int, err error) {
	defer func() {
		if recover() != nil { // an offset beyond the end
			err = errFont
		}
	}()
	in := map[string][]byte{}
	for i := range int(be.Uint16(ttf[4:])) {
		entry := ttf[12+16*i:]
		in[string(entry[:4])] = ttf[be.Uint32(entry[8:]):][:be.Uint32(entry[12:])]
	}
	long := be.Uint16(in["head"][50:]) == 1
	metrics := int(be.Uint16(in["hhea"][34:])) // how many glyphs have an advance of their own
	offset := func(g int) uint32 {
		if long {
			return be.Uint32(in["loca"][4*g:])
		}
		return 2 * uint32(be.Uint16(in["loca"][2*g:]))
	}
	glyphs = slices.Clone(glyphs)
	var glyf, loca, hmtx []byte
	for i := 0; i < len(glyphs); i++ { // grows by parts of composed glyphs
		g := glyphs[i]
		at := 4 * min(g, metrics-1)
		advance := be.Uint16(in["hmtx"][at:])
		bearing := in["hmtx"][at+2:][:2]
		if g >= metrics {
			bearing = in["hmtx"][4*metrics+2*(g-metrics):][:2]
		}
		widths = append(widths, int(advance))
		hmtx = append(be.AppendUint16(hmtx, advance), bearing...)
		loca = be.AppendUint32(loca, uint32(len(glyf)))
		glyf = append(glyf, plain(in["glyf"][offset(g):offset(g+1)], func(part int) int {
			k := slices.Index(glyphs, part)
			if k < 0 {
				k, glyphs = len(glyphs), append(glyphs, part)
			}
			return k
		})...)
		glyf = append(glyf, make([]byte, -len(glyf)&3)...)
	}
	loca = be.AppendUint32(loca, uint32(len(glyf)))
	head, hhea, maxp := bytes.Clone(in["head"]), bytes.Clone(in["hhea"]), bytes.Clone(in["maxp"])
	be.PutUint32(head[8:], 0)
	be.PutUint16(head[50:], 1)
	be.PutUint16(hhea[34:], uint16(len(glyphs)))
	be.PutUint16(maxp[4:], uint16(len(glyphs)))
	return assembled(map[string][]byte{"glyf": glyf, "head": head, "hhea": hhea, "hmtx": hmtx, "loca": loca,
		"maxp": maxp}), widths, nil
}

// assembled returns the file of a font's tables.
func assembled(tables map[string][]byte) []byte {
	n := len(tables)
	power := 1
	for 2*power <= n {
		power *= 2
	}
	log := uint16(0)
	for 1<<(log+1) <= n {
		log++
	}
	out := be.AppendUint32(nil, 0x00010000)
	for _, v := range []uint16{uint16(n), uint16(16 * power), log, uint16(16 * (n - power))} {
		out = be.AppendUint16(out, v)
	}
	var body []byte
	for _, name := range slices.SortedFunc(maps.Keys(tables), cmp.Compare[string]) {
		data := tables[name]
		padded := append(bytes.Clone(data), make([]byte, -len(data)&3)...)
		sum := uint32(0)
		for k := 0; k < len(padded); k += 4 {
			sum += be.Uint32(padded[k:])
		}
		out = append(out, name...)
		for _, v := range []uint32{sum, uint32(12 + 16*n + len(body)), uint32(len(data))} {
			out = be.AppendUint32(out, v)
		}
		body = append(body, padded...)
	}
	return append(out, body...)
}

// plain returns a glyph without instructions, its parts renumbered.
func plain(g []byte, renumber func(part int) int) []byte {
	if len(g) == 0 {
		return nil
	}
	if contours := int(int16(be.Uint16(g))); contours >= 0 {
		end := 10 + 2*contours
		rest := g[end+2+int(be.Uint16(g[end:])):]
		return slices.Concat(g[:end], []byte{0, 0}, rest)
	}
	const (
		words, scale, more, both, matrix, instructions = 1, 8, 32, 64, 128, 256
	)
	out := bytes.Clone(g)
	for at := 10; ; {
		flags := be.Uint16(out[at:])
		be.PutUint16(out[at:], flags&^instructions)
		be.PutUint16(out[at+2:], uint16(renumber(int(be.Uint16(out[at+2:])))))
		at += 6
		if flags&words != 0 {
			at += 2
		}
		switch {
		case flags&scale != 0:
			at += 2
		case flags&both != 0:
			at += 4
		case flags&matrix != 0:
			at += 8
		}
		if flags&more == 0 {
			return out[:at]
		}
	}
}
