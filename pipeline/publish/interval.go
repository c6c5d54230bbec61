package publish

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

const (
	resamples  = 2000
	confidence = 0.95
)

// interval returns the mean of paired differences and its bootstrap interval
// (percentiles, Efron 1979). One difference has no interval: low and high are
// NaN. The random numbers are the same every time.
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

// places returns the ranks of the rows that two versions of a table share: the
// column "rank", or without one the place among these rows. What the file
// doesn't say is which columns are keys; they come first, so it is the fewest
// columns that tell all rows apart.
func places(a, b []*record, header []string) (pa, pb map[string]string) {
	for n := 1; n <= len(header) && header[n-1] != "rank"; n++ {
		x, y := byKeys(a, header[:n]), byKeys(b, header[:n])
		if x == nil || y == nil {
			continue
		}
		return placesOf(a, header[:n], y), placesOf(b, header[:n], x)
	}
	return nil, nil
}

// byKeys indexes rows by their keys, nil if two rows have the same.
func byKeys(rows []*record, keys []string) map[string]*record {
	out := map[string]*record{}
	for _, r := range rows {
		k := joined(r, keys)
		if out[k] != nil {
			return nil
		}
		out[k] = r
	}
	return out
}

func joined(r *record, keys []string) string {
	var at []string
	for _, k := range keys {
		at = append(at, r.fields.get(k))
	}
	return strings.Join(at, ", ")
}

func placesOf(rows []*record, keys []string, shared map[string]*record) map[string]string {
	out := map[string]string{}
	for _, r := range rows {
		k := joined(r, keys)
		if shared[k] == nil {
			continue
		}
		rank, ok := r.fields.lookup("rank")
		if !ok {
			rank = format(float64(len(out) + 1))
		}
		out[k] = rank
	}
	return out
}
