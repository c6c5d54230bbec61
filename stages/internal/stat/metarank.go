package stat

import (
	"math"
	"slices"
)

// A Fusion is one ranking made of many, as in Duan et al., "On the Evaluation Consistency of
// Attribution-based Explanations" (Meta-Rank), ECCV 2024. Methods are indexed as in the input of [Fuse].
type Fusion struct {
	// Wins[p][q] is in how many cases p beats q, a tie counting 1/2.
	Wins [][]float64
	// P[p][q] is the share of cases in which p beats q (equation 4), 1/2 on the diagonal.
	P [][]float64
	// Logit[p][q] is ln(P/(1−P)) with P clipped (equation 5); antisymmetric.
	Logit [][]float64
	// Kappa is the Meta-Rank score of each method; larger is better, the sum is 0.
	Kappa []float64
	// Rank is 1 for the best method; methods of equal Kappa share the smallest.
	Rank []int
}

// Fuse compares every two methods in every case. quality[c][p] says how good method p is in case c, larger is
// better, never NaN. clip in (0, 1/2) bounds P away from 0 and 1: a method that wins always would otherwise
// be infinitely good. The paper leaves the clip and ties open.
//
// Kappa solves κ_p − κ_q = Logit_pq over all pairs (equation 6) in the least-squares sense, with the smallest
// norm. Each pair stands in the system once and all with equal weight, so that the normal equations read
// m·κ_p − Σκ = Σ_q Logit_pq; with Σκ = 0 the solution is the mean of a row of Logit.
func Fuse(quality [][]float64, clip float64) Fusion {
	if len(quality) == 0 {
		return Fusion{}
	}
	m, cases := len(quality[0]), float64(len(quality))
	f := Fusion{Wins: matrix(m), P: matrix(m), Logit: matrix(m), Kappa: make([]float64, m),
		Rank: make([]int, m)}
	halves := make([]int, m*m) // half wins; whole numbers count without branches
	for _, row := range quality {
		for p, x := range row {
			h := halves[p*m : p*m+p]
			for q, y := range row[:p] {
				h[q] += one(x > y) + one(x >= y)
			}
		}
	}
	row := make([]float64, m)
	for p := range m {
		f.P[p][p] = 0.5
		for q := range p {
			f.Wins[p][q] = float64(halves[p*m+q]) / 2
			f.Wins[q][p] = cases - f.Wins[p][q]
			f.P[p][q], f.P[q][p] = f.Wins[p][q]/cases, f.Wins[q][p]/cases
			// Of the losing side, so that mirrored results get mirrored bits; 1−P loses none of a small
			// clip's digits there.
			c := max(min(f.P[p][q], f.P[q][p]), clip)
			l := math.Log((1 - c) / c)
			if f.Wins[p][q] < f.Wins[q][p] {
				l = -l
			}
			f.Logit[p][q], f.Logit[q][p] = l, 0-l // never −0
		}
	}
	for p := range m {
		// In sorted order, so that methods with equal wins get equal bits.
		copy(row, f.Logit[p])
		slices.Sort(row)
		sum := 0.0
		for _, l := range row {
			sum += l
		}
		f.Kappa[p] = sum / float64(m)
	}
	for p, k := range f.Kappa {
		f.Rank[p] = 1
		for _, other := range f.Kappa {
			if other > k {
				f.Rank[p]++
			}
		}
	}
	return f
}

// Agreement returns the mean of Spearman's rank correlation over all pairs of cases for which it is defined,
// and the number of these. A case in which all methods are equal has none.
func Agreement(quality [][]float64) (rho float64, pairs int) {
	sum := 0.0
	for a := range quality {
		for b := range a {
			if r := Spearman(quality[b], quality[a]); !math.IsNaN(r) {
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
