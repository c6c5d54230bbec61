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
)

// figuresRenderer writes figures/*: a picture a cell and port, with its caption in the file.
var figuresRenderer = renderer{
	name:  "figures",
	files: []pattern{{"figures/*.png", "binary"}, {"figures/*.svg", ""}},
	render: func(f *Folder, add func(name string, b []byte)) {
		for _, p := range f.Pictures {
			add(p.File, p.Data)
		}
	},
	read: func(d *disk, name string, b []byte) bool {
		k, ok := readMark(name, b)
		p := &Picture{File: name, Caption: k.Caption, Data: b, readable: ok && intact(name, b)}
		d.pictures[name] = []*Picture{p}
		return ok
	},
}

// A mark is what a figure's file says of itself: in a PNG as an iTXt chunk with the keyword "runexp", in an
// SVG as a comment at its end.
type mark struct {
	Caption string `json:"caption"`
}

const (
	pngHeader = "\x89PNG\r\n\x1a\n"
	pngChunk  = "iTXtrunexp\x00\x00\x00\x00\x00"
	svgOpen   = "\n<!-- runexp "
	svgClose  = " -->\n"

	maxPixels = 1 << 26 // of a picture that is decoded
)

// intact reports whether a picture on disk can be shown.
func intact(file string, b []byte) bool {
	if path.Ext(file) == ".png" {
		_, err := decodePNG(b)
		return err == nil
	}
	return bytes.Contains(b, []byte("</svg>"))
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

// addMark returns a figure with its mark.
func addMark(file string, b []byte, k mark) ([]byte, error) {
	text, err := json.Marshal(k)
	if err != nil {
		return nil, err
	}
	switch path.Ext(file) {
	case ".svg":
		if !bytes.Contains(b, []byte("</svg>")) {
			return nil, fmt.Errorf("its SVG has no end")
		}
		// A comment must not contain two hyphens; < and > are escaped already.
		comment := svgOpen + strings.ReplaceAll(string(text), "-", `\u002d`) + svgClose
		return append(slices.Clip(svgBody(b)), comment...), nil
	case ".png":
		if _, err := decodePNG(b); err != nil {
			return nil, fmt.Errorf("its PNG can't be read: %w", err)
		}
		// Behind the header chunk: length, type, 13 bytes, checksum.
		at := len(pngHeader) + 4 + 4 + 13 + 4
		data := append([]byte(pngChunk), text...)
		chunk := binary.BigEndian.AppendUint32(nil, uint32(len(data)-4))
		chunk = append(chunk, data...)
		chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(data))
		return bytes.Join([][]byte{b[:at], chunk, b[at:]}, nil), nil
	}
	kind := strings.TrimPrefix(path.Ext(file), ".")
	return nil, fmt.Errorf("%q is no kind of figure that can be published", kind)
}

// readMark returns the mark of a figure.
func readMark(file string, b []byte) (mark, bool) {
	var text []byte
	switch path.Ext(file) {
	case ".svg":
		s := string(b)
		if i := strings.LastIndex(s, svgOpen); i >= 0 {
			if body, ok := strings.CutSuffix(s[i+len(svgOpen):], svgClose); ok {
				text = []byte(body)
			}
		}
	case ".png":
		rest, ok := bytes.CutPrefix(b, []byte(pngHeader))
		for ok && len(rest) >= 12 && text == nil {
			n := uint64(binary.BigEndian.Uint32(rest))
			if n > uint64(len(rest)-12) {
				break
			}
			if body, ok := bytes.CutPrefix(rest[4:8+n], []byte(pngChunk)); ok {
				text = body
			}
			rest = rest[12+n:]
		}
	}
	var k mark
	if text == nil || json.Unmarshal(text, &k) != nil {
		return mark{}, false
	}
	return k, true
}

// svgBody returns an SVG without its mark and the end of its last line.
func svgBody(b []byte) []byte {
	if _, ok := readMark("x.svg", b); ok {
		b = b[:bytes.LastIndex(b, []byte(svgOpen))]
	}
	return bytes.TrimRight(b, "\r\n")
}
