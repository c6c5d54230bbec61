package publish

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"image"
	"image/draw"
	"io"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"

	"github.com/runexp/runexp/pipeline/typeset"
)

func (p *Picture) at() at         { return at{p.Cell, ""} }
func (p *Picture) usable() bool   { return p.readable }
func (p *Picture) String() string { return p.File }

func (p *Picture) compare(now *Picture, r *report) bool {
	off, d, tolerance := unlike(p.File, p.Data, now.Data)
	if off == "" {
		r.reproduced.Figures++
	} else {
		row := Row{Column: "picture", Old: "as published", New: off, Deviation: d, Tolerance: tolerance}
		r.add(Differs, row)
	}
	return off == ""
}

func (p *Picture) published(now *Picture) *Picture {
	return &Picture{File: now.File, Stage: now.Stage, Cell: now.Cell, Caption: p.Caption, Data: p.Data}
}

// mergePictures merges figures/*, which has a file for each cell and port.
func (m *merge) mergePictures() error {
	for _, o := range m.outputs["figures"] {
		for _, p := range o.cells {
			file, sep := o.name, "."
			for _, at := range p.cell.Coord {
				file, sep = file+sep+escape(at.Axis)+"="+escape(at.ID), ","
			}
			file += "." + p.figure.Ext
			data, err := addMark(file, p.figure.Data, p.figure.Caption)
			if err != nil {
				return fmt.Errorf("figure %q of %s: %w", o.port, p.cell.Name, err)
			}
			now := &Picture{File: file, Stage: o.stage, Cell: p.cell.Name, Data: data}
			now.Caption = p.figure.Caption
			before := m.disk.pictures[file]
			for _, q := range before {
				q.Cell = now.Cell
			}
			m.out.Pictures = append(m.out.Pictures, mergeFile(m, file, "", before, []*Picture{now})...)
		}
	}
	slices.SortStableFunc(m.out.Pictures, func(a, b *Picture) int {
		return m.out.compareShown(a.Cell, b.Cell)
	})
	return nil
}

// A picture is reproduced if it has the same size, at most farFraction of its pixels differ by more than
// farOff of 255 in some channel, and the channels differ by at most meanOff on average. Colours may be
// rounded the other way, and the edge of a line may move; another map exceeds the limits.
const (
	farOff      = 8
	farFraction = 0.01
	meanOff     = 1.0

	// svgTolerance is by how much a number in an SVG may differ: half a pixel.
	svgTolerance = 0.5
)

// unlike returns how two files of a picture differ, "" if now reproduces the published one. The deviation
// and the tolerance are in levels of 255 or in units of an SVG.
func unlike(file string, published, now []byte) (words string, deviation, tolerance float64) {
	if bytes.Equal(published, now) {
		return "", 0, 0
	}
	switch path.Ext(file) {
	case ".svg":
		return unlikeSVG(svgBody(published), svgBody(now))
	case ".pdf":
		return unlikePDF(published, now)
	case ".tex": // colours have few steps
		if bytes.Equal(texBody(published), texBody(now)) {
			return "", 0, 0
		}
		return "another text", math.Inf(1), 0
	}
	return unlikePNG(published, now)
}

// svgImage matches a map in an SVG. Photographs are JPEGs of the data, and mustn't differ.
var svgImage = regexp.MustCompile(`data:image/png;base64,[A-Za-z0-9+/=]+`)

// unlikeSVG is unlike for SVG files. The maps in them are compared as PNG files.
func unlikeSVG(published, now []byte) (words string, deviation, tolerance float64) {
	a, b := svgImage.FindAll(published, -1), svgImage.FindAll(now, -1)
	half := func(string, string) float64 { return svgTolerance }
	deviation, ok := alike(svgNumber, svgImage.ReplaceAll(published, nil), svgImage.ReplaceAll(now, nil),
		half)
	if !ok || len(a) != len(b) {
		return "another drawing", math.Inf(1), svgTolerance
	}
	for i := range a {
		if bytes.Equal(a[i], b[i]) {
			continue
		}
		x, err1 := imageOf(a[i])
		y, err2 := imageOf(b[i])
		if err1 != nil || err2 != nil {
			return "unreadable", math.Inf(1), 0
		}
		if words, far, most := unlikePNG(x, y); words != "" {
			return "a map is " + words, far, most
		}
	}
	return "", deviation, svgTolerance
}

// imageOf returns the file that a data URL has.
func imageOf(url []byte) ([]byte, error) {
	_, data, _ := bytes.Cut(url, []byte(","))
	return base64.StdEncoding.DecodeString(string(data))
}

// unlikePNG is unlike for PNG files.
func unlikePNG(published, now []byte) (words string, deviation, tolerance float64) {
	a, err1 := decodePNG(published)
	b, err2 := decodePNG(now)
	if err1 != nil || err2 != nil {
		return "unreadable", math.Inf(1), 0
	}
	if a.Bounds().Size() != b.Bounds().Size() {
		now, before := b.Bounds(), a.Bounds()
		return fmt.Sprintf("%d×%d pixels instead of %d×%d", now.Dx(), now.Dy(), before.Dx(), before.Dy()),
			math.Inf(1), 0
	}
	mean, far := pixels(a, b)
	switch {
	case far > farFraction:
		words = fmt.Sprintf("%s %% of the pixels off by more than %d of 255", typeset.Brief(100*far, 3),
			farOff)
		return words, math.Inf(1), 0
	case mean > meanOff:
		return fmt.Sprintf("off by %s of 255 on average", typeset.Brief(mean, 2)), mean, meanOff
	}
	return "", mean, meanOff
}

// pixels returns the mean absolute difference of the channels (red, green, blue and alpha, of 255), and the
// fraction of pixels that differ by more than farOff.
func pixels(a, b image.Image) (mean, far float64) {
	x, y := rgba(a), rgba(b)
	for i := 0; i < len(x); i += 4 {
		worst := 0.0
		for j := i; j < i+4; j++ {
			d := math.Abs(float64(x[j]) - float64(y[j]))
			worst = max(worst, d)
			mean += d
		}
		if worst > farOff {
			far += 4
		}
	}
	n := float64(max(len(x), 1))
	return mean / n, far / n
}

func rgba(p image.Image) []uint8 {
	out := image.NewRGBA(image.Rectangle{Max: p.Bounds().Size()})
	draw.Draw(out, out.Rect, p, p.Bounds().Min, draw.Src)
	return out.Pix
}

// maxInflated is how many bytes the streams of a PDF may have to be compared number by number.
const maxInflated = 1 << 28

// unlikePDF is unlike for PDF files that runexp wrote. Their streams are compared one by one: drawings like
// SVG files, and images byte by byte, each a channel or its difference from the pixel before.
func unlikePDF(published, now []byte) (words string, deviation, tolerance float64) {
	a, err1 := streamsOf(published)
	b, err2 := streamsOf(now)
	if err1 != nil || err2 != nil {
		return "unreadable", math.Inf(1), 0
	}
	if len(a) != len(b) {
		return "another drawing", math.Inf(1), svgTolerance
	}
	half := func(string, string) float64 { return svgTolerance }
	for i, x := range a {
		y, same := b[i], false
		if x.image {
			same = y.image && imageLike(x.data, y.data)
		} else if d, ok := alike(svgNumber, x.data, y.data, half); ok {
			deviation, same = max(deviation, d), true
		}
		if !same {
			return "another drawing", math.Inf(1), svgTolerance
		}
	}
	return "", deviation, svgTolerance
}

// A stream is a decompressed stream of a PDF.
type stream struct {
	image bool
	data  []byte
}

// imageLike reports whether the bytes of two images differ no more than the channels of a reproduced picture.
func imageLike(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	sum, far := 0.0, 0.0
	for i := range a {
		d := math.Abs(float64(a[i]) - float64(b[i]))
		sum += d
		if d > farOff {
			far++
		}
	}
	n := float64(max(len(a), 1))
	return sum/n <= meanOff && far/n <= farFraction
}

// streamsOf returns the streams of a PDF file that runexp wrote, in their order.
func streamsOf(b []byte) (list []stream, err error) {
	left := int64(maxInflated)
	for {
		i := bytes.Index(b, []byte(">>stream\n"))
		if i < 0 {
			return list, nil
		}
		head, data := b[:i], b[i+len(">>stream\n"):]
		k := bytes.LastIndex(head, []byte("/Length "))
		if k < 0 {
			return nil, fmt.Errorf("a stream of no length")
		}
		n, err := strconv.Atoi(string(head[k+len("/Length "):]))
		if err != nil || n < 0 || n > len(data) {
			return nil, fmt.Errorf("a stream ends after its file")
		}
		b = data[n:]
		data = data[:n]
		if bytes.HasSuffix(head[:k], []byte("/Filter/FlateDecode")) {
			z, err := zlib.NewReader(bytes.NewReader(data))
			if err != nil {
				return nil, err
			}
			if data, err = io.ReadAll(io.LimitReader(z, left)); err != nil {
				return nil, err
			}
			if left -= int64(len(data)); left <= 0 {
				return nil, fmt.Errorf("its streams have more than %d bytes", maxInflated)
			}
		}
		list = append(list, stream{bytes.Contains(head[bytes.LastIndex(head, []byte("obj\n"))+1:],
			[]byte("/Subtype/Image")), data})
	}
}
