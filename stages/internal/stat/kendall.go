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

// Concordance returns Kendall's W in [0, 1], the agreement of several rankings with each other, corrected
// for ties: W = χ²/(m(k−1)) with Friedman's χ² (Kendall & Babington Smith 1939). values[c][p] is the value
// of competitor p in case c. It is NaN where χ² is.
func Concordance(values [][]float64) float64 {
	t := Friedman(values)
	return t.Chi2 / (float64(t.Blocks) * float64(len(t.Rank)-1))
}
