package stat

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// A RankTest is the result of [Friedman].
type RankTest struct {
	Blocks int
	Rank   []float64 // mean rank by competitor, 1 for the smallest values
	Chi2   float64   // the statistic, with len(Rank)−1 degrees of freedom
	P      float64   // in [0, 1]
}

// Friedman tests whether competitors rank alike. blocks[b][p] is the value of competitor p in block b,
// never NaN; ties share their mean rank, and the statistic is corrected for them (Friedman 1937; Demšar
// 2006, section 3.2.2). Chi2 and P are NaN without blocks, for one competitor, and if every block is one
// tie.
func Friedman(blocks [][]float64) RankTest {
	t := RankTest{Blocks: len(blocks), Chi2: math.NaN(), P: math.NaN()}
	if len(blocks) == 0 {
		return t
	}
	k, n := float64(len(blocks[0])), float64(len(blocks))
	sums, ties := make([]float64, len(blocks[0])), 0.0
	for _, block := range blocks {
		for p, r := range Ranks(block) {
			sums[p] += r
		}
		ties += tieSum(block)
	}
	t.Rank = make([]float64, len(sums))
	squares := 0.0
	for p, s := range sums {
		t.Rank[p] = s / n
		squares += s * s
	}
	free := 1 - ties/(n*k*(k*k-1))
	if k < 2 || free <= 0 {
		return t
	}
	t.Chi2 = (12/(n*k*(k+1))*squares - 3*n*(k+1)) / free
	t.P = distuv.ChiSquared{K: k - 1}.Survival(t.Chi2)
	return t
}
