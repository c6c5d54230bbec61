package publish

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	resamples  = 2000
	confidence = 0.95
)

// interval returns the mean of paired differences and its bootstrap interval (percentiles, Efron 1979). One
// difference has no interval: low and high are NaN. The random numbers are the same every time.
func interval(diffs []float64) (mean, low, high float64) {
	n := len(diffs)
	for _, d := range diffs {
		mean += d / float64(n)
	}
	if n < 2 {
		return mean, math.NaN(), math.NaN()
	}
	rng := rand.New(rand.NewPCG(1, 2))
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for range n {
			sum += diffs[rng.IntN(n)]
		}
		means[i] = sum / float64(n)
	}
	slices.Sort(means)
	tail := (1 - confidence) / 2
	return mean, quantile(means, tail), quantile(means, 1-tail)
}

// quantile interpolates between the two nearest of the sorted values.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-2)
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
