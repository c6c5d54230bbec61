package stat

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
)

// CriticalDifference returns by how much the mean ranks of two of k ≥ 2 competitors must differ over n
// blocks to be told apart at level alpha: q_α/√2 · √(k(k+1)/(6n)), of the studentized range of k normal
// variables (Nemenyi 1963; Demšar 2006, section 3.2.2).
func CriticalDifference(k, n int, alpha float64) float64 {
	return rangeQuantile(1-alpha, k) / math.Sqrt2 * rankError(k, n)
}

// Nemenyi returns the p-value of a difference of mean ranks among k ≥ 2 competitors over n blocks,
// corrected for all their pairs.
func Nemenyi(difference float64, k, n int) float64 {
	return rangeTail(math.Abs(difference)/rankError(k, n)*math.Sqrt2, k)
}

// rankError returns the standard error of a difference of two mean ranks.
func rankError(k, n int) float64 { return math.Sqrt(float64(k*(k+1)) / float64(6*n)) }

// Alike returns the groups of competitors that don't differ significantly: the largest runs, in the order
// of their ranks, whose first and last differ by less than the critical difference. Groups hold indices,
// best rank first, and may overlap; a competitor that differs from all others is in none.
func Alike(rank []float64, critical float64) [][]int {
	order := make([]int, len(rank))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	var groups [][]int
	reached := 0
	for from := range order {
		to := from + 1
		for to < len(order) && rank[order[to]]-rank[order[from]] < critical {
			to++
		}
		if to > reached && to-from > 1 {
			groups = append(groups, order[from:to])
			reached = to
		}
	}
	return groups
}

// rangeTail returns P(Q > q) for the range Q of k independent standard normal variables. If the smallest is
// z, the others are at least z with probability S = 1 − Φ(z), and some exceeds z+q in the share s = (1 −
// Φ(z+q))/S of those: P(Q > q) = k ∫ φ(z) S^(k−1) (1 − (1 − s)^(k−1)) dz, which loses no digits where the
// tail is small.
func rangeTail(q float64, k int) float64 {
	if q <= 0 {
		return 1
	}
	normal := distuv.UnitNormal // whose Survival cancels where it is small
	density := func(z float64) float64 {
		above := normal.CDF(-z)
		some := -math.Expm1(float64(k-1) * math.Log1p(-normal.CDF(-z-q)/above))
		return float64(k) * normal.Prob(z) * math.Pow(above, float64(k-1)) * some
	}
	sum := 0.0
	for from := -9.0; from < 9; from++ { // beyond, φ is below 1e-18
		sum += quad.Fixed(density, from, from+1, 24, quad.Legendre{}, 0)
	}
	return min(1, sum)
}

// rangeQuantile inverts rangeTail by bisection: it returns q with P(Q ≤ q) = p.
func rangeQuantile(p float64, k int) float64 {
	low, high := 0.0, 1.0
	for rangeTail(high, k) > 1-p {
		low, high = high, 2*high
	}
	for {
		mid := (low + high) / 2
		if mid <= low || mid >= high {
			return mid
		}
		if rangeTail(mid, k) > 1-p {
			low = mid
		} else {
			high = mid
		}
	}
}
