package stat

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// exactPairs is the number of differences up to which [Wilcoxon] uses the exact distribution, exactTies
// that where some are tied or 0.
const (
	exactPairs = 50
	exactTies  = 13
)

// A SignedRank is the result of [Wilcoxon].
type SignedRank struct {
	N           int     // differences other than 0, on which the test depends
	Zeros       int     // differences of 0, which are dropped
	Plus, Minus float64 // sums of the ranks of |d| over positive and over negative differences
	P           float64 // two-sided, in [0, 1]
}

// Statistic returns T, the smaller of the two rank sums.
func (s SignedRank) Statistic() float64 { return min(s.Plus, s.Minus) }

// Effect returns the matched-pairs rank-biserial correlation, (R⁺ − R⁻)/(R⁺ + R⁻) in [−1, 1], which is
// positive if differences mostly are (Kerby 2014). It is NaN without a difference other than 0.
func (s SignedRank) Effect() float64 { return (s.Plus - s.Minus) / (s.Plus + s.Minus) }

// Wilcoxon tests whether paired differences, as [Differences] makes them, are symmetric about 0 (Wilcoxon
// 1945). Zeros are dropped. P is
// exact up to 50 differences without ties or zeros and up to 13 with them, given their ranks; otherwise it
// is that of the normal approximation with the variance corrected for ties, without correction for
// continuity: as in scipy. If all differences are 0, P is 1; if one is NaN or there are none, it is NaN.
func Wilcoxon(differences []float64) SignedRank {
	var s SignedRank
	var size []float64
	var positive []bool
	for _, d := range differences {
		if d == 0 {
			s.Zeros++
			continue
		}
		size, positive = append(size, math.Abs(d)), append(positive, d > 0)
	}
	s.N = len(size)
	ranks := Ranks(size)
	if ranks == nil || len(differences) == 0 {
		return SignedRank{N: s.N, Zeros: s.Zeros, Plus: math.NaN(), Minus: math.NaN(), P: math.NaN()}
	}
	for i, r := range ranks {
		if positive[i] {
			s.Plus += r
		} else {
			s.Minus += r
		}
	}
	ties := tieSum(size)
	n := float64(s.N)
	switch {
	case s.N == 0:
		s.P = 1
	case len(differences) <= exactTies, s.N <= exactPairs && s.Zeros == 0 && ties == 0:
		s.P = min(1, 2*signedRankTail(ranks, s.Statistic()))
	default:
		variance := (n*(n+1)*(2*n+1) - ties/2) / 24
		z := (s.Statistic() - n*(n+1)/4) / math.Sqrt(variance)
		s.P = min(1, 2*distuv.UnitNormal.CDF(z))
	}
	return s
}

// tieSum returns Σ(t³ − t) over the groups of t equal values.
func tieSum(x []float64) float64 {
	sum := 0.0
	for _, t := range tieGroups(x) {
		t := float64(t)
		sum += t*t*t - t
	}
	return sum
}

// signedRankTail returns the probability that the sum of the ranks of positive differences is at most t, if
// each rank is positive with probability 1/2. The 2ⁿ subsets are counted without rounding; ranks, and t,
// are halves of integers.
func signedRankTail(ranks []float64, t float64) float64 {
	n := len(ranks)
	count := make([]float64, n*(n+1)+1) // subsets of the first ranks by twice their sum
	count[0] = 1
	most := 0
	for _, r := range ranks {
		twice := int(2 * r)
		most += twice
		for sum := most; sum >= twice; sum-- {
			count[sum] += count[sum-twice]
		}
	}
	tail := 0.0
	for _, c := range count[:int(2*t)+1] {
		tail += c
	}
	return math.Ldexp(tail, -n)
}

// LeastPairs returns the number of pairs without which [Wilcoxon] can't reject at level alpha in (0, 1),
// however different they are: the smallest n with 2/2ⁿ ≤ alpha.
func LeastPairs(alpha float64) int {
	n := 1
	for math.Ldexp(2, -n) > alpha {
		n++
	}
	return n
}
