package stat

import (
	"math"
	"slices"
	"testing"
)

// rounded is 0.1 + 0.2, which has other bits than 0.3, and than the constant.
var rounded = func(a, b float64) float64 { return a + b }(0.1, 0.2)

func TestTied(t *testing.T) {
	if rounded == 0.3 {
		t.Fatal("equal bits: this tests nothing")
	}
	inf := math.Inf(1)
	for _, c := range []struct {
		x, want    []float64
		resolution float64
	}{
		{[]float64{3, 1, 2}, []float64{3, 1, 2}, 0.5},
		{[]float64{rounded, 1, 0.3}, []float64{0.3, 1, 0.3}, 1e-9},
		{[]float64{5, 1.9, 1, 1.5}, []float64{5, 1, 1, 1}, 0.5}, // a chain
		{[]float64{nan, inf, 1, -inf, nan, 1.1}, []float64{nan, inf, 1, -inf, nan, 1}, 0.2},
		{nil, nil, 1},
	} {
		same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
		if got := Tied(c.x, c.resolution); !slices.EqualFunc(got, c.want, same) {
			t.Errorf("Tied(%v, %g) = %v, want %v", c.x, c.resolution, got, c.want)
		}
	}
}

// TestResolution: a score of quite another size, undefined ones and a large common part don't change what is
// equal among the others.
func TestResolution(t *testing.T) {
	x := []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}
	for name, c := range map[string][]float64{
		"outlier":   append(slices.Clone(x), 1e5),
		"undefined": append(slices.Clone(x), nan, math.Inf(1)),
	} {
		if r := Resolution(c); !(r >= 0.8e-9 && r <= 1e-9) {
			t.Errorf("%s: %g", name, r)
		}
	}
	if r := Resolution(x[:5], x[5:]); !(r >= 0.8e-9 && r <= 1e-9) {
		t.Errorf("two lists: %g", r)
	}
	if r := Resolution(nil, []float64{nan}); r != 0 {
		t.Errorf("of no score: %g", r)
	}
	// All scores are equal but for rounding: none of them differs.
	if d := Differences([]float64{0.3, 0.3}, []float64{rounded, 0.3}); d[0] != 0 || d[1] != 0 {
		t.Errorf("differences of equal scores: %v", d)
	}
}

func TestDifferences(t *testing.T) {
	got := Differences([]float64{0.3, 0.2, 0.5, 1, nan}, []float64{0.2, 0.1, 0.6, 1, 1})
	if got[0] != got[1] || got[0] != -got[2] || got[3] != 0 || !math.IsNaN(got[4]) {
		t.Errorf("differences of a tenth: %v", got)
	}
}

// TestFuseEqualMeans: methods of equal means tie, whatever the order of their scores.
func TestFuseEqualMeans(t *testing.T) {
	a, b := []float64{.1, .2, .3}, []float64{.3, .2, .1}
	x, _ := Mean(a)
	y, _ := Mean(b)
	if x == y {
		t.Fatal("the means have equal bits: this tests nothing")
	}
	f := Fuse([][]float64{Tied([]float64{x, y}, Resolution(a, b))}, Clip(1e-3))
	if f.Kappa[0] != 0 || f.Kappa[1] != 0 || f.Rank[1] != 1 {
		t.Errorf("κ %v, ranks %v", f.Kappa, f.Rank)
	}
}
