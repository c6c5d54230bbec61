// Package thumbnail reduces images and maps: one implementation for stages and pages alike.
package thumbnail

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
)

// Side is the longest side of a thumbnail in pixels, by default.
const Side = 96

// extreme is the fraction of the values, in percent, that lies beyond an end of a map's colours, as in
// sheets.
const extreme = 0.5

// A Plane is a map with its channels added up.
type Plane struct {
	W, H     int
	Values   []float64 // by row; none for an undefined map
	Negative bool      // some value is, before the map was reduced
	State    string    // "", or why nothing is shown: constant, undefined
}

// PlaneOf decodes a map, [H,W] or [C,H,W].
func PlaneOf(payload []byte) (Plane, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return Plane{}, err
	}
	if n := len(t.Shape); n < 2 || n > 3 || t.Len() == 0 {
		return Plane{}, fmt.Errorf("shape %v isn't a map's", t.Shape)
	}
	p := Plane{H: t.Shape[len(t.Shape)-2], W: t.Shape[len(t.Shape)-1]}
	p.Values = make([]float64, p.W*p.H)
	for i, v := range t.Float64s() {
		p.Values[i%len(p.Values)] += v
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range p.Values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return Plane{W: p.W, H: p.H, State: "undefined"}, nil
		}
		low, high = min(low, v), max(high, v)
	}
	p.Negative = low < 0
	if low == high {
		p.State = "constant"
	}
	return p, nil
}

// Within reduces a plane: its longer side has at most side pixels, which are means over the area that they
// cover.
func (p Plane) Within(side int) Plane {
	w, h := within(p.W, p.H, side)
	if p.Values != nil {
		p.Values = shrink(p.Values, p.W, p.H, w, h)
	}
	p.W, p.H = w, h
	return p
}

// Ends returns the values with the colours at the ends: the extreme half percent is left out, of the
// magnitudes if the map is signed. Both are NaN for an undefined map.
func (p Plane) Ends(signed bool) (low, high float64) {
	switch p.State {
	case "undefined":
		return math.NaN(), math.NaN()
	case "constant":
		return p.Values[0], p.Values[0]
	}
	v := slices.Clone(p.Values)
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

// Levels returns a byte for each value: 1 at or below low, 255 at or above high, linear between them, 128
// where these are equal; 0 everywhere if the map is undefined.
func (p Plane) Levels(low, high float64) []byte {
	levels := make([]byte, p.W*p.H)
	for i, v := range p.Values {
		share := 0.5
		if high > low {
			share = min(max((v-low)/(high-low), 0), 1)
		}
		levels[i] = byte(1 + math.Round(254*share))
	}
	return levels
}

// Encode returns the payloads of a plane: its levels, u8 [H,W], and the values of the levels 1 and 255, f64
// [2], which are −x and x if the map has negative values.
func (p Plane) Encode() (levels, ends []byte) {
	low, high := p.Ends(p.Negative)
	small := stages.NewTensor(p.Levels(low, high), p.H, p.W)
	return small.Encode(), stages.NewTensor([]float64{low, high}, 2).Encode()
}

// Decode is the inverse of [Plane.Encode], within the precision of eight bits.
func Decode(levels, ends []byte) (Plane, error) {
	t, err := stages.DecodeTensor(levels)
	if err != nil {
		return Plane{}, err
	}
	e, err := stages.DecodeTensor(ends)
	if err != nil {
		return Plane{}, err
	}
	if len(t.Shape) != 2 || t.DType != stages.U8 || t.Len() == 0 || e.Len() != 2 {
		return Plane{}, fmt.Errorf("shapes %v and %v don't fit a thumbnail and its ends", t.Shape,
			e.Shape)
	}
	p := Plane{W: t.Shape[1], H: t.Shape[0]}
	low, high := e.Float64s()[0], e.Float64s()[1]
	switch {
	case t.Raw[0] == 0:
		p.State = "undefined"
		return p, nil
	case low == high:
		p.State = "constant"
	}
	p.Negative = low < 0
	p.Values = make([]float64, t.Len())
	for i, q := range t.Raw {
		p.Values[i] = low + (float64(q)-1)/254*(high-low)
	}
	return p, nil
}

// Image reduces an image [3,H,W], as u8: its longer side has at most side pixels.
func Image(payload []byte, side int) (stages.Tensor, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return t, err
	}
	if len(t.Shape) != 3 || t.Shape[0] != 3 || t.Len() == 0 {
		return t, fmt.Errorf("shape %v isn't an image's", t.Shape)
	}
	fromH, fromW := t.Shape[1], t.Shape[2]
	w, h := within(fromW, fromH, side)
	if t.DType == stages.U8 && w == fromW && h == fromH {
		return t, nil
	}
	scale := 255.0
	if t.DType == stages.U8 {
		scale = 1
	}
	var pixels []uint8
	values := t.Float64s()
	for n := fromW * fromH; len(values) > 0; values = values[n:] {
		for _, v := range shrink(values[:n], fromW, fromH, w, h) {
			level := 0.0
			if x := v * scale; x > 0 { // false for NaN
				level = math.Round(min(x, 255))
			}
			pixels = append(pixels, uint8(level))
		}
	}
	return stages.NewTensor(pixels, 3, h, w), nil
}

// within reduces a size of w×h pixels so that the longer side is at most side.
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
			sum += float64(v[k*stride] * (min(b, float64(k+1)) - max(a, float64(k))))
		}
		out[i*outStride] = sum / size
	}
}
