package stat

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// CohenD returns d_z, the mean of paired differences over their standard deviation (Cohen 1988, section
// 2.3.5). It is NaN for fewer than two differences and where all are equal.
func CohenD(differences []float64) float64 {
	if len(differences) < 2 {
		return math.NaN()
	}
	mean, deviation := stat.MeanStdDev(differences, nil)
	if deviation == 0 {
		return math.NaN()
	}
	return mean / deviation
}
