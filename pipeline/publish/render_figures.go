package publish

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// figuresRenderer writes figures/*, which has a file for each cell and port. The caption is in the file.
var figuresRenderer = renderer{
	name: "figures",
	files: []pattern{{"figures/*.png", "binary"}, {"figures/*.pdf", "binary"}, {"figures/*.svg", ""},
		{"figures/*.tex", ""}},
	render: func(f *Folder, add func(name string, b []byte)) {
		for _, p := range f.Pictures {
			add(p.File, p.Data)
		}
	},
	read: func(d *disk, name string, b []byte) bool {
		caption, ok := readMark(name, b)
		readable := ok && intact(name, b) == nil
		d.pictures[name] = []*Picture{{File: name, Caption: caption, Data: b, readable: readable}}
		return ok
	},
}

// A mark is the caption in a figure's file, and proves that runexp wrote it. A PNG has it in an iTXt chunk
// with the keyword "runexp", after the chunk of the header; an SVG and LaTeX in a comment at their ends; a
// PDF in a comment before startxref.
type mark struct {
	Caption string `json:"caption"`
}

const (
	pngHeader = 8 + 4 + 4 + 13 + 4 // signature; length, type, 13 bytes and checksum of the first chunk
	pngChunk  = "iTXtrunexp\x00\x00\x00\x00\x00"
	svgOpen   = "\n<!-- runexp "
	svgClose  = " -->\n"
	texOpen   = "\n% runexp "
	pdfOpen   = "\n%runexp "
	pdfEnd    = "\nstartxref\n"

	maxPixels = 1 << 26 // of a picture that is decoded
)

// intact returns an error for a picture that can't be displayed.
func intact(file string, b []byte) error {
	switch ext := strings.TrimPrefix(path.Ext(file), "."); ext {
	case "svg":
		if !bytes.Contains(b, []byte("</svg>")) {
			return fmt.Errorf("its SVG has no end")
		}
	case "pdf":
		if !bytes.HasPrefix(b, []byte("%PDF-")) || !bytes.Contains(b, []byte(pdfEnd)) {
			return fmt.Errorf("its PDF has no beginning or no end")
		}
	case "tex":
		if !utf8.Valid(b) {
			return fmt.Errorf("its LaTeX isn't UTF-8")
		}
	case "png":
		if _, err := decodePNG(b); err != nil {
			return fmt.Errorf("its PNG can't be read: %w", err)
		}
	default:
		return fmt.Errorf("%q is no kind of figure that can be published", ext)
	}
	return nil
}

func decodePNG(b []byte) (image.Image, error) {
	config, err := png.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	if config.Width > maxPixels/max(config.Height, 1) {
		return nil, fmt.Errorf("%d×%d pixels are too many", config.Width, config.Height)
	}
	return png.Decode(bytes.NewReader(b))
}

// addMark returns a figure with its caption in it.
func addMark(file string, b []byte, caption string) ([]byte, error) {
	text, err := json.Marshal(mark{caption})
	if err == nil {
		err = intact(file, b)
	}
	if err != nil {
		return nil, err
	}
	if path.Ext(file) == ".svg" {
		// A comment must not contain two hyphens; < and > are escaped already.
		comment := svgOpen + strings.ReplaceAll(string(text), "-", `\u002d`) + svgClose
		return append(slices.Clip(svgBody(b)), comment...), nil
	}
	if path.Ext(file) == ".tex" {
		return slices.Concat(texBody(b), []byte(texOpen), text, []byte("\n")), nil
	}
	if path.Ext(file) == ".pdf" { // after the table of objects, whose offsets stay valid
		i := bytes.LastIndex(b, []byte(pdfEnd))
		return slices.Concat(b[:i], []byte(pdfOpen), text, b[i:]), nil
	}
	data := append([]byte(pngChunk), text...)
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(data)-len("iTXt")))
	chunk = append(chunk, data...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(data))
	return slices.Concat(b[:pngHeader], chunk, b[pngHeader:]), nil
}

// readMark returns the caption in a figure's file. ok is false for a file without a mark.
func readMark(file string, b []byte) (caption string, ok bool) {
	var text []byte
	switch ext := path.Ext(file); {
	case ext == ".svg":
		if i := bytes.LastIndex(b, []byte(svgOpen)); i >= 0 {
			text = bytes.TrimSuffix(b[i+len(svgOpen):], []byte(svgClose))
		}
	case ext == ".tex":
		if i := bytes.LastIndex(b, []byte(texOpen)); i >= 0 {
			text = b[i+len(texOpen):]
		}
	case ext == ".pdf":
		if i := bytes.LastIndex(b, []byte(pdfOpen)); i >= 0 {
			text, _, _ = bytes.Cut(b[i+len(pdfOpen):], []byte("\n"))
		}
	case len(b) > pngHeader+8:
		n := binary.BigEndian.Uint32(b[pngHeader:])
		b = b[pngHeader+4:]
		text = bytes.TrimPrefix(b[:min(uint64(n)+4, uint64(len(b)))], []byte(pngChunk))
	}
	var k mark
	err := json.Unmarshal(text, &k)
	return k.Caption, err == nil
}

// svgBody returns an SVG without its mark and its last newlines.
func svgBody(b []byte) []byte {
	if _, ok := readMark("x.svg", b); ok {
		b = b[:bytes.LastIndex(b, []byte(svgOpen))]
	}
	return bytes.TrimRight(b, "\r\n")
}

// texBody returns LaTeX without its mark and its last newlines.
func texBody(b []byte) []byte {
	if _, ok := readMark("x.tex", b); ok {
		b = b[:bytes.LastIndex(b, []byte(texOpen))]
	}
	return bytes.TrimRight(b, "\r\n")
}
