package metric

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
)

// Units are disjoint parts of an image that cover it, such as the regions of a grid, or the tokens of a text
// but the special ones.
type Units struct {
	Of    []int32 // the number of the unit that each pixel is of, row by row; −1 for none
	Count int     // units are numbered from 0
}

// Regions returns squares of side×side pixels, row by row. Those at the right and the lower border are cut
// off.
func Regions(height, width, side int) Units {
	across := (width + side - 1) / side
	u := Units{make([]int32, height*width), across * ((height + side - 1) / side)}
	for i := range u.Of {
		u.Of[i] = int32(i/width/side*across + i%width/side)
	}
	return u
}

// NoUnit is in the place of the number of a unit on a payload of segments where a pixel is of none.
const NoUnit = math.MaxUint32

// Tokens returns the tokens of a text that aren't special.
func Tokens(special []bool) Units {
	u := Units{Of: make([]int32, len(special))}
	for i, s := range special {
		if s {
			u.Of[i] = -1
			continue
		}
		u.Of[i] = int32(u.Count)
		u.Count++
	}
	return u
}

// Numbers returns the numbers of the units as a payload of segments has them.
func (u Units) Numbers() []uint32 {
	out := make([]uint32, len(u.Of))
	for i, k := range u.Of {
		out[i] = uint32(k) // NoUnit for −1
	}
	return out
}

// Segments returns the segments of a label map of a given size, in the order of their labels.
func Segments(payload []byte, height, width int) (u Units, err error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return u, err
	}
	if t.DType != stages.U32 && t.DType != stages.U8 || !slices.Equal(t.Shape, []int{height, width}) {
		return u, fmt.Errorf("segments of type %s and shape %v don't match %d×%d pixels", t.DType, t.Shape,
			height, width)
	}
	labels := t.Uint32s()
	names := slices.Clone(labels)
	slices.Sort(names)
	names = slices.Compact(names)
	u = Units{make([]int32, len(labels)), len(names)}
	for i, l := range labels {
		k, _ := slices.BinarySearch(names, l)
		u.Of[i] = int32(k)
	}
	return u, nil
}

// Numbered returns the units that the numbers on a payload of segments are of: every one from 0 up to the
// largest is there.
func Numbered(payload []byte) (u Units, height, width int, err error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return u, 0, 0, err
	}
	if t.DType != stages.U32 || len(t.Shape) != 2 || t.Len() == 0 {
		return u, 0, 0, fmt.Errorf("units of type %s and shape %v aren't numbers of pixels", t.DType, t.Shape)
	}
	u.Of = make([]int32, t.Len())
	seen := make([]bool, t.Len())
	for i, l := range t.Uint32s() {
		if l == NoUnit {
			u.Of[i] = -1
			continue
		}
		if int(l) >= len(seen) {
			return u, 0, 0, fmt.Errorf("unit %d of %d pixels", l, len(seen))
		}
		u.Of[i], seen[l] = int32(l), true
		u.Count = max(u.Count, int(l)+1)
	}
	if k := slices.Index(seen[:u.Count], false); k >= 0 {
		return u, 0, 0, fmt.Errorf("no pixel is of unit %d of %d", k, u.Count)
	}
	return u, t.Shape[0], t.Shape[1], nil
}

// Mean returns the mean of the pixels' values in each unit. Units of equal size have the order of their sums.
func (u Units) Mean(values []float64) []float64 {
	sum, count := make([]float64, u.Count), make([]float64, u.Count)
	for i, k := range u.Of {
		if k >= 0 {
			sum[k] += values[i]
			count[k]++
		}
	}
	for k := range sum {
		sum[k] /= count[k]
	}
	return sum
}

// Sum returns the sum of the pixels' values in each unit.
func (u Units) Sum(values []float64) []float64 {
	sum := make([]float64, u.Count)
	for i, k := range u.Of {
		if k >= 0 {
			sum[k] += values[i]
		}
	}
	return sum
}

// Spread gives each pixel what its unit has, and 0 without a unit.
func Spread[T any](u Units, of []T) []T {
	out := make([]T, len(u.Of))
	for i, k := range u.Of {
		if k >= 0 {
			out[i] = of[k]
		}
	}
	return out
}
