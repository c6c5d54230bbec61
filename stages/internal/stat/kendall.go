package stat

import (
	"math"
	"slices"
)

// tieGroups returns the sizes of the groups of equal values, in ascending order of the values.
func tieGroups(x []float64) []int {
	x = slices.Sorted(slices.Values(x))
	var sizes []int
	for i := range x {
		if i > 0 && x[i] == x[i-1] {
			sizes[len(sizes)-1]++
		} else {
			sizes = append(sizes, 1)
		}
	}
	return sizes
}

// Kendall returns Kendall's rank correlation τ-b in [−1, 1]: concordant minus discordant pairs over the
// geometric mean of the numbers of pairs that x and y don't tie (Kendall 1945). It is NaN if there are
// fewer than two values, if either side is constant, or if a value is NaN.
func Kendall(x, y []float64) float64 {
	if len(x) != len(y) || Ranks(x) == nil || Ranks(y) == nil {
		return math.NaN()
	}
	balance, untiedX, untiedY := 0, 0, 0
	for i := range x {
		for j := range i {
			a, b := one(x[i] > x[j])-one(x[i] < x[j]), one(y[i] > y[j])-one(y[i] < y[j])
			balance += a * b
			untiedX += a * a
			untiedY += b * b
		}
	}
	return float64(balance) / math.Sqrt(float64(untiedX)*float64(untiedY))
}
