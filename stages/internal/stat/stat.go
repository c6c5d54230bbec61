// Package stat has the statistics that fuse and compare scores: ranks, correlations and means (stat.go);
// which numbers are equal, which is decided before the other functions treat ties (equal.go); tests of
// paired scores (wilcoxon.go, sign.go, holm.go; wilcoxon_sample.go where some were measured exactly) with
// their effect size and power (effect.go, power.go), and of many rankings (friedman.go, nemenyi.go); the
// fusion of many rankings into one, metarank.go, and the methods with which it is compared, borda.go,
// kemeny.go, bradleyterry.go with laplacian.go, and copeland.go, by the correlation of kendall.go; the
// agreement of raters, krippendorff.go, and of metrics, icr.go. Sums are taken in the order of their terms:
// equal inputs give equal bits.
package stat

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Ranks returns the rank of each value, 1 for the smallest; equal values share the mean of their ranks. It
// returns nil if a value is NaN.
func Ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i, v := range x {
		if math.IsNaN(v) {
			return nil
		}
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case x[a] < x[b]:
			return -1
		case x[a] > x[b]:
			return 1
		}
		return a - b
	})
	ranks := make([]float64, len(x))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && x[order[to]] == x[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = float64(from+1+to) / 2
		}
		from = to
	}
	return ranks
}

// Spearman returns Spearman's rank correlation ρ in [−1,1], with shared ranks for ties. It is NaN if there
// are fewer than two pairs, if either side is constant, or if a value is NaN.
func Spearman(x, y []float64) float64 {
	rx, ry := Ranks(x), Ranks(y)
	if len(x) < 2 || len(x) != len(y) || rx == nil || ry == nil {
		return math.NaN()
	}
	return stat.Correlation(rx, ry, nil)
}

// Pearson returns Pearson's correlation r in [−1,1]. It is NaN if there are fewer than two pairs, if either
// side is constant, or if a value isn't finite.
func Pearson(x, y []float64) float64 {
	n := float64(len(x))
	if len(x) < 2 || len(x) != len(y) || constant(x) || constant(y) {
		return math.NaN()
	}
	mx, my := 0.0, 0.0
	for i := range x {
		mx, my = mx+x[i], my+y[i]
	}
	mx, my = mx/n, my/n
	xx, xy, yy := 0.0, 0.0, 0.0
	for i := range x {
		a, b := x[i]-mx, y[i]-my
		xx, xy, yy = xx+float64(a*a), xy+float64(a*b), yy+float64(b*b)
	}
	return min(max(xy/(math.Sqrt(xx)*math.Sqrt(yy)), -1), 1)
}

// constant reports whether all values are the same, whose mean may be rounded to another.
func constant(x []float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return v != x[0] })
}

// SpearmanOfCommon returns Spearman's ρ over the positions at which neither side is NaN, and how many these
// are.
func SpearmanOfCommon(x, y []float64) (rho float64, n int) {
	var a, b []float64
	for i := range x {
		if !math.IsNaN(x[i]) && !math.IsNaN(y[i]) {
			a, b = append(a, x[i]), append(b, y[i])
		}
	}
	return Spearman(a, b), len(a)
}

// Mean returns the mean of the values that aren't NaN, and how many those are. It is NaN if there are none.
func Mean(x []float64) (mean float64, n int) {
	sum := 0.0
	for _, v := range x {
		if !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	return sum / float64(n), n
}
