package metric

import "math"

// MinMax scales values to [0,1], the least to 0 and the greatest to 1. It returns false, and makes all NaN,
// if they are equal, or if one isn't finite.
func MinMax(values []float64) bool {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = math.Min(low, v), math.Max(high, v) // NaN if one is
	}
	span := high - low
	if !(span > 0) || math.IsInf(span, 1) {
		for i := range values {
			values[i] = nan
		}
		return false
	}
	for i, v := range values {
		values[i] = (v - low) / span
	}
	return true
}

// Drop returns the part of a probability that is lost from p to q, 0 for a gain: Average Drop is its mean. It
// is undefined unless p is positive. All is lost where q is negative, as the difference of two probabilities
// may be.
func Drop(p, q float64) float64 {
	if p <= 0 {
		return nan
	}
	q = math.Max(0, q)
	return math.Max(0, p-q) / p
}

// Increase returns 1 if q is larger than p, 0 if not, undefined if either is: Average Increase is its mean.
func Increase(p, q float64) float64 {
	switch {
	case q > p:
		return 1
	case q <= p:
		return 0
	}
	return nan
}

// Gain returns the part of what p lacks to 1 that is won from p to q, 0 for a loss: Average Gain is its mean.
// It is undefined for p = 1.
func Gain(p, q float64) float64 {
	if p >= 1 {
		return nan
	}
	return math.Max(0, q-p) / (1 - p)
}

// Harmonic returns the harmonic mean of numbers ≥ 0, which is 0 if one of them is.
func Harmonic(values ...float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += 1 / v // +∞ for 0
	}
	return float64(len(values)) / sum
}
