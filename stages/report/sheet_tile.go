package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/picture"
)

// A tile is one map of the sheet, at the size at which it's drawn.
type tile struct {
	column string // the id of its column
	w, h   int
	values []float64
	state  string  // "", or a word displayed instead of the map
	only   float64 // the value of a constant map
	scores []scored
	scale  *scale
}

// A scored is a score of a map, with the ids on the axes that the map doesn't have.
type scored struct {
	name      string
	value     float64
	direction stages.Direction
}

// A scale says which values have the colours at the ends.
type scale struct {
	signed    bool
	low, high float64 // −high and high if signed
}

// level returns a value's position on a colour map, from 0 to 1; 0.5 is 0 if the map is signed.
func (s *scale) level(v float64) float64 {
	if s.high == s.low { // differences that vanished when the map was made smaller
		v, s = 0, &scale{low: -1, high: 1}
	}
	return min(max((v-s.low)/(s.high-s.low), 0), 1)
}

// ends formats the ends.
func (s *scale) ends() string {
	if s.signed {
		return "±" + short(s.high)
	}
	return short(s.low) + " … " + short(s.high)
}

// scaleFor returns the scale of maps that share one: from the 0.5th to the 99.5th percentile of their values,
// or to the 99.5th percentile of the magnitudes on both sides of 0.
func scaleFor(signed bool, tiles ...*tile) *scale {
	var v []float64
	for _, t := range tiles {
		for _, x := range t.values {
			if signed {
				x = math.Abs(x)
			}
			v = append(v, x)
		}
	}
	if len(v) == 0 {
		return &scale{signed: signed, high: 1}
	}
	slices.Sort(v)
	s := &scale{signed: signed, low: percentile(v, 0.5), high: percentile(v, 99.5)}
	if signed {
		if s.high == 0 {
			s.high = v[len(v)-1] // fewer than one pixel in 200 isn't 0
		}
		s.low = -s.high
	} else if s.low == s.high {
		s.low, s.high = v[0], v[len(v)-1] // fewer than one pixel in 200 differs
	}
	return s
}

// percentile returns the smallest of the sorted values v that p percent of them don't exceed.
func percentile(v []float64, p float64) float64 {
	return v[max(int(math.Ceil(p/100*float64(len(v))))-1, 0)]
}

// leastSide is the length in pixels of the shorter side of a tile, at least; longest of a tile that shows an
// image pixel by pixel, and usual where neither that nor a whole number of pixels for one is possible.
const (
	leastSide   = 96
	longestSide = 144
	usualSide   = 112
)

// boxFor returns the size of tiles for images of w×h pixels: a whole multiple or fraction if possible, so
// that pixels stay equally large. An image more than twice as long as wide is shown smaller in a tile of two
// to one.
func boxFor(w, h int) (int, int) {
	long, short := max(w, h), min(w, h)
	long = min(long, 2*short)
	up, down := 1, max(short/leastSide, 1)
	if short < leastSide {
		up = (leastSide + short - 1) / short
	}
	if short*up/down > longestSide {
		up, down = usualSide, short
	}
	short, long = (short*up+down/2)/down, (long*up+down/2)/down
	if w > h {
		return long, short
	}
	return short, long
}

// fit returns the size at which an image of w×h pixels is drawn in a box: the largest, but with a whole
// number of pixels for each of the image if that fills three quarters.
func fit(w, h, boxW, boxH int) (int, int) {
	if k := min(boxW/w, boxH/h); k > 0 && (4*k*w >= 3*boxW || 4*k*h >= 3*boxH) {
		return k * w, k * h
	}
	if w*boxH > h*boxW { // the width limits
		return boxW, max((h*boxW+w/2)/w, 1)
	}
	return max((w*boxH+h/2)/h, 1), boxH
}

// planeAt resizes values to w×h: by repeating them where that is exact, otherwise smoothly.
func planeAt(v []float64, fromW, fromH, w, h int) []float64 {
	if w%fromW != 0 || h%fromH != 0 {
		return picture.ResizePlane(v, fromW, fromH, w, h, picture.Bilinear())
	}
	out := make([]float64, w*h)
	for i := range out {
		out[i] = v[i/w/(h/fromH)*fromW+i%w/(w/fromW)]
	}
	return out
}

// photoOf decodes an image.
func photoOf(b []byte) (*picture.RGB, error) {
	t, err := stages.DecodeTensor(b)
	if err != nil {
		return nil, err
	}
	if len(t.Shape) != 3 || t.Shape[0] != 3 || t.Len() == 0 {
		return nil, fmt.Errorf("shape %v isn't that of an image", t.Shape)
	}
	h, w := t.Shape[1], t.Shape[2]
	pixels := t.Raw
	if t.DType != stages.U8 {
		pixels = make([]uint8, t.Len())
		for i, v := range t.Float64s() {
			if v > 0 { // false for NaN
				pixels[i] = uint8(math.Round(255 * min(v, 1)))
			}
		}
	}
	return picture.FromPlanes(pixels, w, h), nil
}

// photoAt resizes an image as planeAt does.
func photoAt(m *picture.RGB, w, h int) (*picture.RGB, error) {
	if w%m.W == 0 && h%m.H == 0 {
		return m.Resize(w, h, picture.Nearest())
	}
	return m.Resize(w, h, picture.Bicubic())
}

// tileOf decodes a map and resizes it. negative reports whether it has negative values.
func tileOf(b []byte, w, h int) (t *tile, negative bool, err error) {
	m, err := stages.DecodeTensor(b)
	if err != nil {
		return nil, false, err
	}
	if n := len(m.Shape); n < 2 || n > 3 || m.Len() == 0 {
		return nil, false, fmt.Errorf("shape %v isn't that of a map", m.Shape)
	}
	fromH, fromW := m.Shape[len(m.Shape)-2], m.Shape[len(m.Shape)-1]
	sum := make([]float64, fromH*fromW)
	for i, v := range m.Float64s() {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return &tile{state: "undefined"}, false, nil
		}
		sum[i%len(sum)] += v
	}
	low, high := slices.Min(sum), slices.Max(sum)
	if low == high {
		return &tile{state: "constant", only: low}, low < 0, nil
	}
	return &tile{w: w, h: h, values: planeAt(sum, fromW, fromH, w, h)}, low < 0, nil
}
