package metric

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
)

// Enlarged returns a map of a mosaic, channels summed, at the mosaic's size.
func Enlarged(payload []byte, height, width int) ([]float64, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	values, h, w, err := Values(t, Signed)
	if err != nil {
		return nil, err
	}
	if h > height || w > width || h < 1 || w < 1 {
		return nil, fmt.Errorf("a map of %d×%d pixels doesn't match a grid of %d×%d", h, w, height, width)
	}
	return Enlarge(values, h, w, height, width), nil
}

// KeepPositive sets negative values to 0 and returns the sum.
func KeepPositive(values []float64) (total float64) {
	for i, v := range values {
		values[i] = math.Max(0, v) // Max propagates NaN
		total += values[i]
	}
	return total
}

// InsideBox returns a mask of the pixels in a box.
func InsideBox(payload []byte, height, width int) ([]uint8, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(t.Shape, []int{1, 4}) {
		return nil, fmt.Errorf("boxes of shape %v: one box is needed", t.Shape)
	}
	var edges [4]int
	for k, v := range t.Float64s() {
		edges[k] = int(v)
		if float64(edges[k]) != v {
			return nil, fmt.Errorf("the box %v isn't aligned to pixels", t.Float64s())
		}
	}
	left, top, right, bottom := edges[0], edges[1], edges[2], edges[3]
	if left < 0 || top < 0 || right <= left || bottom <= top || right > width || bottom > height {
		return nil, fmt.Errorf("the box %v isn't inside a grid of %d×%d", t.Float64s(), height, width)
	}
	mask := make([]uint8, height*width)
	for y := top; y < bottom; y++ {
		for x := left; x < right; x++ {
			mask[y*width+x] = 1
		}
	}
	return mask, nil
}
