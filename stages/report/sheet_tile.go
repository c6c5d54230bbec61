package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/picture"
)

// A tile is one map of the sheet, in its own pixels.
type tile struct {
	column string // the id of its column
	w, h   int
	values []float32 // [h,w]
	state  string    // "", or a word displayed instead of the map
	only   float64   // the value of a constant map
	scores []scored
	scale  *scale
}

// A scored is a score of a map, with the ids on the axes that the map doesn't have.
type scored struct {
	name      string
	value     float64
	direction stages.Direction
}

// A scale is the values with the colours at the ends.
type scale struct {
	signed    bool
	low, high float64 // −high and high if signed
}

// level returns a value's position on a colour map, from 0 to 1; 0.5 is 0 if the map is signed.
func (s *scale) level(v float64) float64 {
	if s.high == s.low { // differences that vanished when the map was reduced
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

// scaleFor returns the common scale of maps: from the 0.5th to the 99.5th percentile of their values, or,
// if signed, to the 99.5th percentile of the magnitudes on both sides of 0.
func scaleFor(signed bool, tiles ...*tile) *scale {
	var v []float64
	for _, t := range tiles {
		for _, x := range t.values {
			if signed {
				x = float32(math.Abs(float64(x)))
			}
			v = append(v, float64(x))
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

// photoOf decodes an image.
func photoOf(b []byte) (*picture.RGB, error) {
	t, err := stages.DecodeTensor(b)
	if err != nil {
		return nil, err
	}
	if len(t.Shape) != 3 || t.Shape[0] != 3 || t.Len() == 0 {
		return nil, fmt.Errorf("shape %v isn't an image's", t.Shape)
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

// paleGrey returns an image in light grey, on which colours are visible.
func paleGrey(m *picture.RGB) *picture.RGB {
	out := &picture.RGB{W: m.W, H: m.H, Pix: make([]uint8, len(m.Pix))}
	for i := 0; i < len(m.Pix); i += 3 {
		luma := (299*int(m.Pix[i]) + 587*int(m.Pix[i+1]) + 114*int(m.Pix[i+2])) / 1000
		grey := uint8(70 + 170*luma/255)
		out.Pix[i], out.Pix[i+1], out.Pix[i+2] = grey, grey, grey
	}
	return out
}

// tileOf decodes a map. negative reports whether it has negative values.
func tileOf(b []byte) (t *tile, negative bool, err error) {
	m, err := stages.DecodeTensor(b)
	if err != nil {
		return nil, false, err
	}
	if n := len(m.Shape); n < 2 || n > 3 || m.Len() == 0 {
		return nil, false, fmt.Errorf("shape %v isn't a map's", m.Shape)
	}
	h, w := m.Shape[len(m.Shape)-2], m.Shape[len(m.Shape)-1]
	sum := make([]float64, h*w)
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
	t = &tile{w: w, h: h, values: make([]float32, len(sum))}
	for i, v := range sum {
		t.values[i] = float32(v)
	}
	return t, low < 0, nil
}
