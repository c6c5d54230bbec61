package stat

import (
	"cmp"
	"math"
	"slices"
)

// Tests of ranks ask which numbers are equal. Equal results of arithmetic needn't have equal bits: 5/7 − 4/7
// isn't 2/7 − 1/7, and 0.3 − 0.2 isn't 0.1. So equality is settled first, by Tied, at the resolution of the
// scores that the numbers are made of. What is tied then is the same for scores in another unit, with another
// zero, and in another order.
const (
	// sameShare is the share of the scores' range within which two of them are equal.
	sameShare = 1e-9
	// sameBits is the share of the largest score: a double of that size can't represent smaller
	// differences.
	sameBits = 4 * 0x1p-52
)

// Resolution returns the distance within which numbers made of the scores are equal: 1e-9 of the scores'
// range, and at least what rounding does to the largest of them. The range is that of the middle nine tenths,
// so that a score of quite another size doesn't make all others equal. NaN and infinite scores don't count.
func Resolution(scores ...[]float64) float64 {
	var finite []float64
	largest := 0.0
	for _, list := range scores {
		for _, x := range list {
			if x-x == 0 { // neither NaN nor infinite
				finite = append(finite, x)
				largest = max(largest, math.Abs(x))
			}
		}
	}
	if len(finite) == 0 {
		return 0
	}
	slices.Sort(finite)
	cut := (len(finite) + 10) / 20 // at each end
	middle := finite[len(finite)-1-cut]/2 - finite[cut]/2
	return max(2*middle*sameShare, largest*sameBits)
}

// Tied returns the numbers with one value for all that are equal: a group of equal ones is a longest chain of
// sorted numbers whose neighbours are at most resolution apart, and takes the value of its smallest. NaN and
// infinite ones stay.
func Tied(x []float64, resolution float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) }) // NaN first
	out := slices.Clone(x)
	for k, i := range order {
		if k > 0 && x[i]-x[order[k-1]] <= resolution {
			out[i] = out[order[k-1]]
		}
	}
	return out
}

// Differences returns a − b, paired, at the resolution of the scores a and b: 0 for those that are equal, and
// one magnitude for differences that are equal except for their signs.
func Differences(a, b []float64) []float64 {
	sizes := make([]float64, len(a)+1) // the last is 0
	for i := range a {
		sizes[i] = math.Abs(a[i] - b[i])
	}
	sizes = Tied(sizes, Resolution(a, b))[:len(a)]
	for i := range a {
		sizes[i] = math.Copysign(sizes[i], a[i]-b[i])
	}
	return sizes
}
