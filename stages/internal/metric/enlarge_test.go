package metric

import (
	"math"
	"testing"
)

// TestEnlarge compares with interpolation written the other way round: every pixel of the source spreads a
// tent over the result.
func TestEnlarge(t *testing.T) {
	for _, s := range [][4]int{{1, 1, 3, 2}, {2, 3, 7, 5}, {4, 4, 8, 8}, {5, 2, 6, 2}, {3, 3, 3, 9}} {
		h, w, height, width := s[0], s[1], s[2], s[3]
		values := make([]float64, h*w)
		for i := range values {
			values[i] = math.Sin(float64(i)*1.7) * 3
		}
		got := Enlarge(values, h, w, height, width)
		for y := range height {
			for x := range width {
				want := 0.0
				for r := range h {
					for c := range w {
						want += values[r*w+c] * tent(y, r, h, height) * tent(x, c, w, width)
					}
				}
				if d := math.Abs(got[y*width+x] - want); !(d <= 1e-12) {
					t.Fatalf("%v: pixel %d,%d is %v, want %v", s, y, x, got[y*width+x], want)
				}
			}
		}
	}
	same := []float64{1, 2}
	if got := Enlarge(same, 1, 2, 1, 2); &got[0] != &same[0] {
		t.Error("a map of the right size was copied")
	}
}

// tent is the weight of source pixel k in pixel i of the result, along an axis.
func tent(i, k, from, to int) float64 {
	at := min(max((float64(i)+0.5)*float64(from)/float64(to)-0.5, 0), float64(from-1))
	return max(0, 1-math.Abs(at-float64(k)))
}
