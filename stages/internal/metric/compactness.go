package metric

import (
	"math"
	"slices"
)

// The functions below measure how much of an image a map needs: its compactness. Values must be finite and
// not negative, except those of HistogramEntropy.

// Gini returns the Gini index of values, by which Chalasani et al., "Concise Explanations of Neural Networks
// using Adversarial Training", ICML 2020, measure the sparseness of a map: Σ(2i−n−1)·aᵢ / (n·Σa) over the
// values in rising order. It is 0 if all are equal, 1 − 1/n if one has all, and NaN if none has any.
func Gini(values []float64) float64 {
	rising := slices.Sorted(slices.Values(values))
	weighted, total, n := 0.0, 0.0, float64(len(rising))
	for i, v := range rising {
		weighted += float64((2*float64(i+1) - n - 1) * v)
		total += v
	}
	return weighted / (n * total)
}

// Entropy returns the Shannon entropy, in nats, of values divided by their sum: the complexity of Bhatt,
// Weller and Moura, "Evaluating and aggregating feature-based model explanations", IJCAI 2020. It is 0 if one
// value has all, ln n if all are equal, and NaN if none has any.
func Entropy(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	if total == 0 {
		return nan
	}
	entropy := 0.0
	for _, v := range values {
		if p := v / total; p > 0 {
			entropy -= float64(p * math.Log(p))
		}
	}
	return max(entropy, 0) // −0 of a single value
}

// HistogramEntropy returns the Shannon entropy, in nats, of a histogram of values with bins of equal width
// from the smallest to the largest one, by which Hedström et al. measure the complexity of a map in eMPRT. A
// bin holds its lower edge, the last one its upper edge too. Equal values are in one bin: 0.
func HistogramEntropy(values []float64, bins int) float64 {
	low, high := slices.Min(values), slices.Max(values)
	if low == high {
		return 0
	}
	width := (high - low) / float64(bins)
	edge := func(k int) float64 {
		if k == bins {
			return high
		}
		return low + float64(float64(k)*width)
	}
	counts := make([]float64, bins)
	for _, v := range values {
		k := min(int((v-low)/(high-low)*float64(bins)), bins-1)
		// The division may round to the bin next to that of the edges.
		switch {
		case v < edge(k):
			k--
		case k < bins-1 && v >= edge(k+1):
			k++
		}
		counts[k]++
	}
	return Entropy(counts)
}

// Exceeding returns how many values are larger than a share of the largest one.
func Exceeding(values []float64, share float64) (n int) {
	least := float64(share * slices.Max(values))
	for _, v := range values {
		if v > least {
			n++
		}
	}
	return n
}

// Quantile returns the quantile q, in [0,1], of values in rising order, linearly interpolated between the two
// next to it: NumPy's quantile.
func Quantile(rising []float64, q float64) float64 {
	return interpolated(rising, q*float64(len(rising)-1))
}

// interpolated returns the value at a place, from 0 on, between those of values in rising order.
func interpolated(rising []float64, place float64) float64 {
	k := min(int(place), len(rising)-1)
	low, high := rising[k], rising[min(k+1, len(rising)-1)]
	share := place - float64(k)
	if share < 0.5 {
		return low + float64((high-low)*share)
	}
	return high - float64((high-low)*(1-share))
}
