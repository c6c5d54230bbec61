package stat

import (
	"math"
	"slices"
)

// Consistency is the internal consistency reliability of two metrics: the mean over images of Spearman's ρ
// between the scores that they give the same methods, after Tomsett et al., "Sanity Checks for Saliency
// Metrics", AAAI 2020. a[i] and b[i] hold the scores of image i by method. n is the number of images with a
// ρ; an image with a NaN, or with equal scores of all methods by one metric, has none.
func Consistency(a, b [][]float64) (icr float64, n int) {
	rho := make([]float64, len(a))
	for i := range a {
		rho[i] = Spearman(a[i], b[i])
	}
	return Mean(rho)
}

// ConsistencyOfficial is what the code of Walker et al., "Attribution Quality Metrics with Magnitude
// Alignment", IJCAI 2024, calls internal consistency reliability: the mean over the whole matrix of ρ between
// any two rows of a and b together, those of two images by one metric and of a row with itself included. The
// rows are orders: see [Order]. Of a single image it is ρ between its two rows.
func ConsistencyOfficial(a, b [][]float64) float64 {
	if len(a) == 0 {
		return math.NaN()
	}
	if len(a) == 1 {
		return Spearman(a[0], b[0])
	}
	// The matrix is ZZᵀ for rows Z of zero mean and unit length: its sum is that of squares of column sums.
	columns := make([]float64, len(a[0]))
	for _, rows := range [][][]float64{a, b} {
		for _, row := range rows {
			z := Ranks(row)
			mean, _ := Mean(z)
			length := 0.0
			for k := range z {
				z[k] -= mean
				length += float64(z[k] * z[k])
			}
			for k := range z {
				columns[k] += z[k] / math.Sqrt(length)
			}
		}
	}
	sum := 0.0
	for _, c := range columns {
		sum += float64(c * c)
	}
	n := float64(len(a) + len(b))
	return sum / (n * n)
}

// Order returns the methods of an image from the best to the worst, as the code of Walker et al. does: the
// indices that sort the scores, reversed if higher is better. The statistics of that code are of these
// indices, not of ranks. Methods of equal score are in the order of their indices, reversed likewise.
func Order(scores []float64, higher bool) []float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case scores[a] < scores[b]:
			return -1
		case scores[a] > scores[b]:
			return 1
		}
		return 0
	})
	if higher {
		slices.Reverse(order)
	}
	out := make([]float64, len(order))
	for i, k := range order {
		out[i] = float64(k)
	}
	return out
}
