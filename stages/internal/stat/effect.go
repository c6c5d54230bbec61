package stat

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// CohenD returns d_z, the mean of paired differences over their standard deviation (Cohen 1988, section
// 2.3.5). It is 0 below 1e-9, and NaN for fewer than two differences and where all are equal.
func CohenD(differences []float64) float64 {
	if len(differences) < 2 {
		return math.NaN()
	}
	if slices.Min(differences) == slices.Max(differences) {
		return math.NaN() // their deviation from a rounded mean needn't be 0
	}
	mean, deviation := stat.MeanStdDev(differences, nil)
	if math.Abs(mean) <= sameShare*deviation {
		return 0 // rounding alone makes a mean of such differences
	}
	return mean / deviation
}
