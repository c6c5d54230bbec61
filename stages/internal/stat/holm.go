package stat

import (
	"cmp"
	"math"
	"slices"
)

// Holm returns p-values corrected for their number (Holm 1979): to reject where the corrected one is at
// most α rejects any true hypothesis with probability at most α. An undefined p-value stays NaN and doesn't
// count.
func Holm(p []float64) []float64 {
	out := make([]float64, len(p))
	var order []int
	for i, x := range p {
		out[i] = math.NaN()
		if !math.IsNaN(x) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	last := 0.0
	for k, i := range order {
		last = max(last, min(1, float64(len(order)-k)*p[i]))
		out[i] = last
	}
	return out
}
