package review

import (
	"bytes"
	"compress/flate"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
)

const (
	imageSide = 96  // of an image's longer side, in pixels
	extreme   = 0.5 // percent of the values that lie beyond an end of a map's colours, as in sheets
)

// The bytes of all maps before they are packed, which makes half of noisy ones, and less of others: a page of
// few MB opens at once and can be sent, one of a large folder still opens.
const (
	fewMapBytes  = 4 << 20
	mostMapBytes = 24 << 20
	perMap       = 48 * 48
)

// mapSides are the sides that maps may have. A page takes the largest at which all maps fit.
var mapSides = []int{96, 64, 48, 32, 24, 16}

// A heat is a map made small: a byte a pixel.
type heat struct {
	w, h      int
	low, high float64 // the values of the bytes 1 and 255; 128 is in the middle
	state     string  // "" or why there is nothing to see: constant, undefined, missing
	levels    []byte
}

// planeOf decodes a map and adds up its channels.
func planeOf(b []byte) (plane []float64, w, h int, err error) {
	t, err := stages.DecodeTensor(b)
	if err != nil {
		return nil, 0, 0, err
	}
	if n := len(t.Shape); n < 2 || n > 3 || t.Len() == 0 {
		return nil, 0, 0, fmt.Errorf("shape %v isn't that of a map", t.Shape)
	}
	h, w = t.Shape[len(t.Shape)-2], t.Shape[len(t.Shape)-1]
	plane = make([]float64, w*h)
	for i, v := range t.Float64s() {
		plane[i%len(plane)] += v
	}
	return plane, w, h, nil
}

// smaller makes a map small, and reports whether it has negative values.
func smaller(plane []float64, w, h, side int) (m heat, small []float64, negative bool) {
	m.w, m.h = within(w, h, side)
	m.low, m.high = math.Inf(1), math.Inf(-1)
	for _, v := range plane {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return heat{w: m.w, h: m.h, state: "undefined"}, nil, false
		}
		m.low, m.high = min(m.low, v), max(m.high, v)
	}
	if m.low == m.high {
		m.state = "constant"
		return m, nil, m.low < 0
	}
	return m, shrink(plane, w, h, m.w, m.h), m.low < 0
}

// colour sets the levels of a map to those of its values. Its colours have the ends of sheets.
func (m *heat) colour(small []float64, signed bool) {
	if m.levels = make([]byte, m.w*m.h); m.state != "" {
		return
	}
	m.low, m.high = ends(small, signed)
	for i, v := range small {
		m.levels[i] = m.level(v)
	}
}

// level returns the byte of a value, from 1 to 255.
func (m *heat) level(v float64) byte {
	if m.high == m.low { // differences that vanished when the map was made smaller
		return 128
	}
	share := (v - m.low) / (m.high - m.low)
	return byte(1 + math.Round(254*min(max(share, 0), 1)))
}

// ends returns the values with the colours at the ends: the extreme half percent is left out, of the
// magnitudes if the map is signed.
func ends(values []float64, signed bool) (low, high float64) {
	v := slices.Clone(values)
	if signed {
		for i, x := range v {
			v[i] = math.Abs(x)
		}
	}
	slices.Sort(v)
	at := func(p float64) float64 { return v[max(int(math.Ceil(p/100*float64(len(v))))-1, 0)] }
	low, high = at(extreme), at(100-extreme)
	if signed {
		if high == 0 {
			high = v[len(v)-1]
		}
		return -high, high
	}
	if low == high {
		return v[0], v[len(v)-1]
	}
	return low, high
}

// within returns the size of something of w×h pixels whose longer side is at most side.
func within(w, h, side int) (int, int) {
	long := max(w, h)
	if long <= side {
		return w, h
	}
	return max((w*side+long/2)/long, 1), max((h*side+long/2)/long, 1)
}

// shrink resizes a plane to a smaller one, whose pixels are means over the area that they cover.
func shrink(v []float64, fromW, fromH, w, h int) []float64 {
	if fromW == w && fromH == h {
		return v
	}
	rows := make([]float64, fromH*w)
	for y := range fromH {
		shrinkLine(v[y*fromW:], 1, fromW, rows[y*w:], 1, w)
	}
	out := make([]float64, w*h)
	for x := range w {
		shrinkLine(rows[x:], w, fromH, out[x:], w, h)
	}
	return out
}

// shrinkLine resizes a line of from pixels to n, each a stride from the last.
func shrinkLine(v []float64, stride, from int, out []float64, outStride, n int) {
	size := float64(from) / float64(n)
	for i := range n {
		a, b := float64(i)*size, float64(i+1)*size
		sum := 0.0
		for k := int(a); k < from && float64(k) < b; k++ {
			sum += v[k*stride] * (min(b, float64(k+1)) - max(a, float64(k)))
		}
		out[i*outStride] = sum / size
	}
}

// pack compresses bytes as a browser unpacks them.
func pack(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// photo encodes an image, made small, with its media type.
func photo(b []byte) (data []byte, media string, err error) {
	t, err := stages.DecodeTensor(b)
	if err != nil {
		return nil, "", err
	}
	if len(t.Shape) != 3 || t.Shape[0] != 3 || t.Len() == 0 {
		return nil, "", fmt.Errorf("shape %v isn't that of an image", t.Shape)
	}
	fromH, fromW := t.Shape[1], t.Shape[2]
	w, h := within(fromW, fromH, imageSide)
	scale := 255.0
	if t.DType == stages.U8 {
		scale = 1
	}
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	var planes [3][]float64
	values := t.Float64s()
	for c := range planes {
		planes[c] = shrink(values[c*fromW*fromH:(c+1)*fromW*fromH], fromW, fromH, w, h)
	}
	for i := range w * h {
		var v [3]uint8
		for c := range v {
			if x := planes[c][i] * scale; x > 0 { // false for NaN
				v[c] = uint8(math.Round(min(x, 255)))
			}
		}
		m.SetRGBA(i%w, i/w, color.RGBA{v[0], v[1], v[2], 255})
	}
	var out bytes.Buffer
	if max(w, h) < imageSide { // pixels of so small an image are seen one by one
		err = png.Encode(&out, m)
		return out.Bytes(), "image/png", err
	}
	err = jpeg.Encode(&out, m, &jpeg.Options{Quality: 88})
	return out.Bytes(), "image/jpeg", err
}
