package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Fusion is one ranking made of many, as in Duan et al., "On the Evaluation Consistency of
// Attribution-based Explanations" (Meta-Rank), ECCV 2024. Methods are indexed as in the input of [Fuse].
type Fusion struct {
	// Wins[p][q] is in how many cases p beats q, a tie counting 1/2. Wins[p][q] + Wins[q][p] is the number of
	// cases that have both.
	Wins [][]float64
	// P[p][q] is the share of these in which p beats q (equation 4), 1/2 on the diagonal; NaN if there are
	// none.
	P [][]float64
	// Logit[p][q] is ln(P/(1−P)) with P smoothed (equation 5); antisymmetric, NaN where P is.
	Logit [][]float64
	// Kappa is the Meta-Rank score of each method; larger is better, the sum is 0.
	Kappa []float64
	// Rank is 1 for the best method; methods of equal Kappa share the smallest.
	Rank []int
	// Part numbers the methods' parts from 0. Methods of one part have been compared, directly or through
	// others; the sum of each part's Kappa is 0, and Kappa and Rank of different parts can't be compared.
	Part []int
}

// A Smoothing returns the share of lost comparisons, 0 < share < 1, of the one of two methods that lost the
// fewer: lost (which may be a half) of n > 0. A method that wins always would otherwise be infinitely good.
type Smoothing func(lost, n float64) float64

// Clip bounds shares to [clip, 1−clip].
func Clip(clip float64) Smoothing {
	return func(lost, n float64) float64 { return max(lost/n, clip) }
}

// Laplace counts one more win and one more loss than there were.
func Laplace(lost, n float64) float64 { return (lost + 1) / (n + 2) }

// Fuse compares every two methods in every case that has both. quality[c][p] says how good method p is in
// case c, larger is better, NaN if it is absent. The paper leaves the smoothing and ties open.
//
// Kappa solves κ_p − κ_q = Logit_pq over all pairs (equation 6) in the least-squares sense, each equation
// weighted by the number of the pair's cases, with the smallest norm: the normal equations are those of a
// graph's Laplacian, n_p·κ_p − Σ_q n_pq·κ_q = Σ_q n_pq·Logit_pq with n_p = Σ_q n_pq, and Σκ = 0. If every
// pair has the same number of cases, the solution is the mean of a row of Logit.
func Fuse(quality [][]float64, smoothing Smoothing) Fusion {
	if len(quality) == 0 {
		return Fusion{}
	}
	m := len(quality[0])
	f := Fusion{Wins: Wins(quality), P: matrix(m), Logit: matrix(m)}
	for p := range m {
		f.P[p][p] = 0.5
		for q := range p {
			n := f.Wins[p][q] + f.Wins[q][p] // exact: halves of whole numbers
			f.P[p][q], f.P[q][p] = f.Wins[p][q]/n, f.Wins[q][p]/n
			// Of the losing side, so that mirrored results get mirrored bits; 1−P loses none of a small
			// clip's digits there.
			c := smoothing(min(f.Wins[p][q], f.Wins[q][p]), n)
			l := math.Log((1 - c) / c)
			if f.Wins[p][q] < f.Wins[q][p] {
				l = -l
			} else if f.Wins[p][q] == f.Wins[q][p] {
				l = 0
			}
			if n == 0 {
				l = math.NaN()
			}
			f.Logit[p][q], f.Logit[q][p] = l, 0-l // never −0
		}
	}
	f.Part = Parts(f.Wins)
	f.Kappa = f.leastSquares()
	f.Rank = Places(f.Kappa)
	return f
}

// Wins counts for every two methods in how many of the cases that have both the first has the larger quality,
// a tie counting 1/2.
func Wins(quality [][]float64) [][]float64 {
	m := len(quality[0])
	halves, counts := make([]int, m*m), make([]int, m*m) // whole numbers count without branches
	present, values := make([]int, 0, m), make([]float64, 0, m)
	for _, row := range quality {
		present, values = present[:0], values[:0]
		for p, x := range row {
			if !math.IsNaN(x) {
				present, values = append(present, p), append(values, x)
			}
		}
		for a, p := range present {
			h, n, x := halves[p*m:p*m+p], counts[p*m:p*m+p], values[a]
			for b, q := range present[:a] {
				h[q] += one(x > values[b]) + one(x >= values[b])
				n[q]++
			}
		}
	}
	wins := matrix(m)
	for p := range m {
		for q := range p {
			wins[p][q] = float64(halves[p*m+q]) / 2
			wins[q][p] = float64(counts[p*m+q]) - wins[p][q]
		}
	}
	return wins
}

// leastSquares returns κ.
func (f *Fusion) leastSquares() []float64 {
	m := len(f.Wins)
	kappa := make([]float64, m)
	if f.balanced() {
		for p := range kappa {
			// In sorted order, so that methods with equal wins get equal bits.
			for _, l := range slices.Sorted(slices.Values(f.Logit[p])) {
				kappa[p] += l
			}
			kappa[p] /= float64(m)
		}
		return kappa
	}
	weights := matrix(m)
	for p := range m {
		for q := range m {
			if n := f.Wins[p][q] + f.Wins[q][p]; n > 0 {
				weights[p][q] = n
				kappa[p] += n * f.Logit[p][q]
			}
		}
	}
	kappa = solveLaplacian(weights, f.Part, kappa)
	for p := range kappa {
		// Rounded, so that methods with equal results have one κ.
		kappa[p] = math.Round(kappa[p]*1e12)/1e12 + 0 // never −0
	}
	return kappa
}

// balanced reports whether every two methods met in the same number of cases.
func (f *Fusion) balanced() bool {
	for p := range f.Wins {
		for q := range p {
			if n := f.Wins[p][q] + f.Wins[q][p]; n == 0 || n != f.Wins[1][0]+f.Wins[0][1] {
				return false
			}
		}
	}
	return true
}

// An Interval is a percentile interval of a bootstrap; its ends are NaN if it is undefined.
type Interval struct{ Low, High float64 }

// FuseIntervals returns intervals of κ and rank that hold 95 % of resamples of the cases, drawn with
// replacement. A resample that doesn't connect all methods by comparisons ranks them not and is passed over.
// The intervals are undefined with fewer than two cases, and if half of the resamples are passed over.
func FuseIntervals(quality [][]float64, smoothing Smoothing, resamples int,
	r *rand.Rand) (kappa, rank []Interval) {
	return FuseIntervalsOf(func() [][]float64 { return quality }, smoothing, resamples, r)
}

// FuseIntervalsOf is FuseIntervals for qualities that are estimates: each resample of the cases is of other
// ones, which estimate returns, of the same cases and methods.
func FuseIntervalsOf(estimate func() [][]float64, smoothing Smoothing, resamples int,
	r *rand.Rand) (kappa, rank []Interval) {
	quality := estimate()
	if len(quality) == 0 {
		return nil, nil
	}
	m := len(quality[0])
	kappas, ranks := make([][]float64, m), make([][]float64, m)
	drawn := make([][]float64, len(quality))
	for k := range resamples {
		if k > 0 {
			quality = estimate()
		}
		for c := range drawn {
			drawn[c] = quality[r.IntN(len(quality))]
		}
		f := Fuse(drawn, smoothing)
		if slices.Max(f.Part) > 0 {
			continue
		}
		for p := range m {
			kappas[p], ranks[p] = append(kappas[p], f.Kappa[p]), append(ranks[p], float64(f.Rank[p]))
		}
	}
	for p := range m {
		if len(quality) < 2 || 2*len(kappas[p]) <= resamples {
			kappas[p], ranks[p] = nil, nil
		}
		kappa, rank = append(kappa, percentiles(kappas[p])), append(rank, percentiles(ranks[p]))
	}
	return kappa, rank
}

// percentiles returns the smallest interval between two of the values outside of which are at most 2.5 % of
// them on either side.
func percentiles(x []float64) Interval {
	if len(x) == 0 {
		return Interval{math.NaN(), math.NaN()}
	}
	slices.Sort(x)
	outside := len(x) / 40
	return Interval{x[outside], x[len(x)-1-outside]}
}

// Places returns the place of each method by its score, 1 for the largest; equal scores share the smallest.
func Places(score []float64) []int {
	places := make([]int, len(score))
	for p, s := range score {
		places[p] = 1
		for _, other := range score {
			if other > s {
				places[p]++
			}
		}
	}
	return places
}

// Agreement returns the mean of Spearman's rank correlation over all pairs of cases for which it is defined,
// of the methods that both cases have, and the number of these pairs. A case in which all methods are equal
// has none.
func Agreement(quality [][]float64) (rho float64, pairs int) {
	sum := 0.0
	for a := range quality {
		for b := range a {
			if r, _ := SpearmanOfCommon(quality[b], quality[a]); !math.IsNaN(r) {
				sum += r
				pairs++
			}
		}
	}
	return sum / float64(pairs), pairs
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func matrix(m int) [][]float64 {
	all := make([]float64, m*m)
	rows := make([][]float64, m)
	for i := range rows {
		rows[i] = all[i*m : (i+1)*m]
	}
	return rows
}
