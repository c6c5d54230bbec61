package stat

import (
	"cmp"
	"math"
	"slices"
)

// A Level is a level of measurement: it says which distance of two values Krippendorff's α counts.
type Level string

// The levels. IntervalLevel is the squared difference; ordinal the squared number of values in between, those
// equal to either counting half; nominal is 1 between different values.
const (
	IntervalLevel Level = "interval"
	OrdinalLevel  Level = "ordinal"
	NominalLevel  Level = "nominal"
)

// Krippendorff returns Krippendorff's α = 1 − Dₒ/Dₑ, how much the values of each unit agree: 1 if they are
// equal, 0 as by chance. units[u] holds the values that raters gave unit u, NaN where one gave none; units
// with less than two values don't count. α is NaN if all values are equal, since nothing varies then.
// Krippendorff, Content Analysis, 2nd edition, 2004, chapter 11.
//
// Dₒ is the mean distance of two values of one unit, Dₑ that of any two. Ordinal distances are those of
// interval between the mean ranks that the values have among all.
func Krippendorff(units [][]float64, level Level) float64 {
	return alpha(pairable(units), level, 1)
}

// KrippendorffOfficial is α as in the code of Walker et al., "Attribution Quality Metrics with Magnitude
// Alignment", IJCAI 2024: interval distances, where Dₒ divides by the number of a unit's values, as if each
// were also paired with itself, which makes α larger. It is 1 where Dₒ or Dₑ is 0.
func KrippendorffOfficial(units [][]float64) float64 {
	if a := alpha(pairable(units), IntervalLevel, 0); !math.IsNaN(a) {
		return a
	}
	return 1
}

// pairable drops missing values, and units with less than two others.
func pairable(units [][]float64) [][]float64 {
	var out [][]float64
	for _, u := range units {
		u = slices.DeleteFunc(slices.Clone(u), math.IsNaN)
		if len(u) > 1 {
			out = append(out, u)
		}
	}
	return out
}

// alpha computes α where a unit of m values divides its distances by m − own.
func alpha(units [][]float64, level Level, own int) float64 {
	all := slices.Concat(units...)
	if level == OrdinalLevel {
		ranks := Ranks(all)
		for u := range units {
			units[u], ranks = ranks[:len(units[u])], ranks[len(units[u]):]
		}
		all = slices.Concat(units...)
	}
	observed, n := 0.0, float64(len(all))
	for _, u := range units {
		observed += distances(u, level) / float64(len(u)-own)
	}
	expected := distances(all, level) / (n - 1)
	if !(expected > 0) {
		return math.NaN()
	}
	return 1 - observed/expected
}

// distances returns the sum of distances over all ordered pairs of values.
func distances(values []float64, level Level) float64 {
	n := float64(len(values))
	if level == NominalLevel {
		sorted, same := slices.SortedFunc(slices.Values(values), cmp.Compare), 0.0
		for from := 0; from < len(sorted); {
			to := from + 1
			for to < len(sorted) && sorted[to] == sorted[from] {
				to++
			}
			same += float64((to - from) * (to - from))
			from = to
		}
		return n*n - same
	}
	// Σ(v−w)² = 2n·Σ(v−mean)², without the cancellation of squares of large values.
	mean, _ := Mean(values)
	sum := 0.0
	for _, v := range values {
		sum += float64((v - mean) * (v - mean))
	}
	return 2 * n * sum
}
