package stat

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/runexp/runexp/stages/interval"
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

// CohenDOf is [CohenD] for the exact differences of all items, where only some were measured exactly: of the
// estimates of their mean and of the mean of their squares. It is NaN where that leaves no deviation.
func CohenDOf(s interval.Sample) float64 {
	if s.Whole() {
		return CohenD(slices.DeleteFunc(slices.Clone(s.Exact), math.IsNaN))
	}
	mean, n := s.Estimate(), s.Defined()
	squares := s.Map(func(v float64) float64 { return v * v }).Estimate()
	variance := (squares - mean*mean) * n / (n - 1)
	if !(variance > 0) {
		return math.NaN()
	}
	return mean / math.Sqrt(variance)
}
