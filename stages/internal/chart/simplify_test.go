package chart

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/plot/vg"
)

// TestSimplified checks that lines keep their ends and their course: each point that is gone lies within the
// distance of the segment that replaces it, and straight stretches are gone.
func TestSimplified(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 2, 3, 50, 1001} {
		var line []vg.Point
		y := 0.0
		for i := range n {
			if i%7 == 0 {
				y = r.NormFloat64()
			}
			line = append(line, vg.Point{X: vg.Length(i), Y: vg.Length(y * float64(i%7))})
		}
		got := simplified(line, 0.1)
		if n < 3 {
			if len(got) != n {
				t.Errorf("%d points become %d", n, len(got))
			}
			continue
		}
		if got[0] != line[0] || got[len(got)-1] != line[n-1] || n > 50 && len(got) > n/2 {
			t.Errorf("%d points become %d from %v to %v", n, len(got), got[0], got[len(got)-1])
		}
		k := 0
		for _, p := range line {
			if p == got[k] && k < len(got)-1 {
				k++
			}
			if d := distance(p, got[max(k-1, 0)], got[k]); !(d <= 0.1) {
				t.Fatalf("%v is %g from the line", p, d)
			}
		}
		if k != len(got)-1 {
			t.Errorf("%d of %d points are those of the line", k, len(got)-1)
		}
	}
	if d := distance(vg.Point{X: 3, Y: 4}, vg.Point{}, vg.Point{}); math.Abs(d-5) > 1e-12 {
		t.Errorf("3, 4 is %g from the origin", d)
	}
}
