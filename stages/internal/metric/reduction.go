package metric

import (
	"math"
	"slices"
)

// A Reduction says how the channels of a place become one value. It is the type of the parameters that choose
// one.
type Reduction string

const (
	Sum    Reduction = "sum"     // Σ_c
	AbsSum Reduction = "abs-sum" // |Σ_c|
	SumAbs Reduction = "sum-abs" // Σ|_c|
	MaxAbs Reduction = "max-abs" // the largest magnitude
	Mean   Reduction = "mean"
	None   Reduction = "none" // channels stay; not for Of
)

// Of returns one value for each of n places, given the values of channel after channel.
func (r Reduction) Of(values []float64, n int) []float64 {
	out := make([]float64, n)
	channels := 0
	for channel := range slices.Chunk(values, max(n, 1)) {
		channels++
		for i, v := range channel {
			switch r {
			case SumAbs:
				out[i] += math.Abs(v)
			case MaxAbs:
				out[i] = math.Max(out[i], math.Abs(v))
			default:
				out[i] += v
			}
		}
	}
	for i, v := range out {
		switch r {
		case AbsSum:
			out[i] = math.Abs(v)
		case Mean:
			out[i] = v / float64(channels)
		}
	}
	return out
}
