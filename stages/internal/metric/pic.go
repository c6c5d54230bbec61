package metric

import (
	"cmp"
	"math"
	"slices"
)

// The functions below are the performance information curve of Kapishnikov, Bolukbasi, Viégas and Terry,
// "XRAI: Better Attributions Through Regions", ICCV 2019, section 4.1, in the order of the authors' code:
// responses against the information that an image has, by the size of its compressed form.

// InformationPoints is the number of points of an information curve: x = 0, 0.001, …, 1.
const InformationPoints = 1001

// Normalised maps values linearly so that low becomes 0 and high 1, and clips them to [0,1]. NaN, as of
// values that equal low and high, stays.
func Normalised(values []float64, low, high float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = min(max((v-low)/(high-low), 0), 1)
	}
	return out
}

// InformationCurve returns the curve through normalised responses over normalised entropies, both in the
// order of the thresholds. Responses only rise: each is at least the one before. The curve goes through
// (0,0) and (1,1), and linearly from point to point in the order of entropies; where several have one, from
// the last. NaN responses are skipped.
func InformationCurve(entropies, responses []float64) []float64 {
	type point struct{ x, y float64 }
	points, most := make([]point, 0, len(entropies)+2), 0.0
	for k, x := range entropies {
		if responses[k] > most {
			most = responses[k]
		}
		points = append(points, point{x, most})
	}
	points = append(points, point{0, 0}, point{1, 1})
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	curve, k := make([]float64, InformationPoints), 0
	for i := range curve[1:] {
		x := float64(i) * 0.001
		for points[k+1].x <= x {
			k++
		}
		from, to := points[k], points[k+1]
		slope := (to.y - from.y) / (to.x - from.x)
		curve[i] = float64(slope*(x-from.x)) + from.y
	}
	curve[InformationPoints-1] = 1
	return curve
}

// Median returns the median of values, the mean of the middle two of an even number, and NaN for none or if
// one of them is NaN.
func Median(values []float64) float64 {
	if len(values) == 0 || slices.ContainsFunc(values, math.IsNaN) {
		return nan
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}
