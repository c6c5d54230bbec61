package publish

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"image/draw"
	"image/png"
	"math"
	"slices"
	"strings"
)

// A picture is reproduced if it has the same size, at most one pixel in a
// hundred is off by more than farOff in some channel (of 255), and the channels
// are off by at most meanOff on average. That forgives a colour that was rounded
// the other way and the edge of a line, not another map.
const (
	farOff   = 8
	farShare = 0.01
	meanOff  = 1.0
)

// shown is a figure as README.md shows it.
type shown struct {
	file    string
	stage   string
	cell    string
	caption string
}

// A mark is what a figure's file says of itself: in a PNG as an iTXt chunk with
// the keyword "runexp", in an SVG as a comment at its end.
type mark struct {
	Caption string `json:"caption"`
}

// mergeFigures makes figures/*: one file a cell and port.
func (m *merge) mergeFigures() error {
	for _, c := range m.cells {
		if c.State != Done {
			continue
		}
		for i := range c.Figures {
			f := &c.Figures[i]
			file := m.names[output{"figures", c.Stage, f.Port}]
			for j, at := range c.Coord {
				sep := ","
				if j == 0 {
					sep = "."
				}
				file += sep + escape(at.Axis) + "=" + escape(at.ID)
			}
			file += "." + f.Ext
			if err := m.mergeFigure(file, c, f); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(m.figures, func(a, b shown) int { return m.compareShown(a.cell, b.cell) })
	return nil
}

func (m *merge) mergeFigure(file string, c *Cell, f *Figure) error {
	ext := "." + f.Ext
	fresh, err := addMark(ext, f.Data, mark{f.Caption})
	if err != nil {
		return fmt.Errorf("figure %q of %s: %w", f.Port, c.Name, err)
	}
	m.files[file] = fresh
	caption := f.Caption
	old, exists := m.disk[file]
	said, readable := readMark(ext, old)
	standing := m.standing(c)
	off, d, tolerance := "", 0.0, 0.0
	if readable = readable && standing != unclaimed && intact(ext, old); readable {
		off, d, tolerance = unlike(ext, old, fresh)
	}
	switch {
	case !readable || off != "" && standing == contested:
		m.tally.add(addedOr(rewritten, exists), Row{File: file, Cell: c.Name})
	case off == "":
		m.files[file], caption = old, said.Caption
		m.tally.counts.Figures++
	default:
		m.files[file], caption = old, said.Caption
		m.tally.add(differs, Row{File: file, Cell: c.Name, Column: "picture", Old: "as published", New: off, Deviation: d, Tolerance: tolerance})
	}
	m.figures = append(m.figures, shown{file, c.Stage, c.Name, caption})
	return nil
}

// intact reports whether a picture on disk can be shown.
func intact(ext string, b []byte) bool {
	if ext == ".png" {
		_, err := decodePNG(b)
		return err == nil
	}
	return bytes.Contains(b, []byte("</svg>"))
}

// maxPixels bounds the pictures that are looked at.
const maxPixels = 1 << 26

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

// unlike says in words how two figures differ, with the size of the difference
// in grey levels of 255 or units of an SVG and what's tolerated; "" if they don't.
func unlike(ext string, published, now []byte) (words string, deviation, tolerance float64) {
	if bytes.Equal(published, now) {
		return "", 0, 0
	}
	if ext == ".svg" {
		d, ok := alike(svgNumber, svgBody(published), svgBody(now), func(string, string) float64 { return svgTolerance })
		if ok {
			return "", d, svgTolerance
		}
		return "another drawing", math.Inf(1), svgTolerance
	}
	a, err := decodePNG(published)
	if err != nil {
		return "unreadable", math.Inf(1), 0
	}
	b, err := decodePNG(now)
	if err != nil {
		return "unreadable", math.Inf(1), 0
	}
	if a.Bounds().Size() != b.Bounds().Size() {
		return fmt.Sprintf("%v pixels instead of %v", b.Bounds().Size(), a.Bounds().Size()), math.Inf(1), 0
	}
	mean, far := pixels(a, b)
	switch {
	case far > farShare:
		return fmt.Sprintf("%s of the pixels off by more than %d of 255", percent(far), farOff), math.Inf(1), 0
	case mean > meanOff:
		return fmt.Sprintf("off by %s of 255 on average", brief(mean, 2)), mean, meanOff
	}
	return "", mean, meanOff
}

func percent(share float64) string { return brief(100*share, 2) + " %" }

// pixels returns the mean absolute difference of the channels (red, green, blue
// and alpha, of 255), and the share of pixels that are far off.
func pixels(a, b image.Image) (mean, far float64) {
	x, y := rgba(a), rgba(b)
	sum, count := 0, 0
	for i := 0; i+3 < len(x.Pix); i += 4 {
		worst := 0
		for j := i; j < i+4; j++ {
			d := int(x.Pix[j]) - int(y.Pix[j])
			d = max(d, -d)
			worst = max(worst, d)
			sum += d
		}
		if worst > farOff {
			count++
		}
	}
	n := max(len(x.Pix), 1)
	return float64(sum) / float64(n), float64(count) / float64(max(n/4, 1))
}

func rgba(p image.Image) *image.RGBA {
	out := image.NewRGBA(image.Rectangle{Max: p.Bounds().Size()})
	draw.Draw(out, out.Rect, p, p.Bounds().Min, draw.Src)
	return out
}

const (
	pngHeader = "\x89PNG\r\n\x1a\n"
	keyword   = "runexp"
	svgOpen   = "\n<!-- runexp "
	svgClose  = " -->\n"

	// svgTolerance is how far a number in an SVG may be off: half a pixel.
	svgTolerance = 0.5
)

// addMark returns a figure with its mark.
func addMark(ext string, b []byte, k mark) ([]byte, error) {
	text, err := json.Marshal(k)
	if err != nil {
		return nil, err
	}
	switch ext {
	case ".svg":
		if !bytes.Contains(b, []byte("</svg>")) {
			return nil, fmt.Errorf("its SVG has no end")
		}
		// A comment must not contain two hyphens; < and > are escaped already.
		return []byte(string(svgBody(b)) + svgOpen + strings.ReplaceAll(string(text), "-", `\u002d`) + svgClose), nil
	case ".png":
		if _, err := decodePNG(b); err != nil {
			return nil, fmt.Errorf("its PNG can't be read: %w", err)
		}
		// Behind the header chunk: length, type, 13 bytes, checksum.
		at := len(pngHeader) + 4 + 4 + 13 + 4
		data := append([]byte("iTXt"+keyword+"\x00\x00\x00\x00\x00"), text...)
		chunk := binary.BigEndian.AppendUint32(nil, uint32(len(data)-4))
		chunk = append(chunk, data...)
		chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(data))
		return bytes.Join([][]byte{b[:at], chunk, b[at:]}, nil), nil
	}
	return nil, fmt.Errorf("%q is no kind of figure that can be published", strings.TrimPrefix(ext, "."))
}

// readMark returns the mark of a figure.
func readMark(ext string, b []byte) (mark, bool) {
	var text []byte
	switch ext {
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
			if body, ok := bytes.CutPrefix(rest[4:8+n], []byte("iTXt"+keyword+"\x00\x00\x00\x00\x00")); ok {
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
	if _, ok := readMark(".svg", b); ok {
		b = b[:bytes.LastIndex(b, []byte(svgOpen))]
	}
	return bytes.TrimRight(b, "\r\n")
}
