package scores

import (
	"math"

	"github.com/runexp/runexp/stages/internal/stat"
)

// A Comparison is the signed-rank test of a competitor's scores minus the reference's, over the images that
// have a defined score of both.
type Comparison struct {
	Competitor int
	N          int     // images
	Mean       float64 // of the differences; NaN without images
	Own        float64 // the competitor's mean over these images
	Reference  float64 // the reference's
	Effect     float64 // d_z of the differences
	Test       stat.SignedRank
	P          float64 // corrected for the number of comparisons
}

// Compare tests all competitors that have a cell against the reference, corrected by Holm if holm is set.
// pairs has the correction count all pairs of competitors, as it should where the reference was chosen by
// these scores: against the best of equal ones, tests that count themselves alone have false alarms in 9 of
// 100 experiments instead of 5. tests is the number that is counted, 1 without correction.
func (m *Case) Compare(reference int, pairs, holm bool) (all []Comparison, tests int) {
	var p []float64
	for i, c := range m.Cells {
		if i == reference || c == nil {
			continue
		}
		x, y := m.both(i, reference)
		d := Differences(x, y)
		test := stat.WilcoxonOf(d)
		all = append(all, Comparison{i, d.Len(), x.Minus(y).Estimate(), x.Estimate(), y.Estimate(),
			stat.CohenDOf(d), test, test.P})
		p = append(p, test.P)
	}
	switch {
	case holm && pairs:
		p, n := m.Pairwise(true)
		for k := range all {
			all[k].P = p[all[k].Competitor][reference]
		}
		return all, n
	case holm:
		for k, p := range stat.Holm(p) {
			all[k].P = p
		}
		return all, max(1, len(all))
	}
	return all, 1
}

// Pairwise tests every two competitors and returns the p-values, corrected by Holm if holm is set, with the
// number of tests that is counted, 1 without correction. They are NaN for a competitor and itself, for one
// without a cell, and where no image has a score of both.
func (m *Case) Pairwise(holm bool) (p [][]float64, tests int) {
	p = make([][]float64, len(m.Cells))
	var all []float64
	for a := range p {
		p[a] = make([]float64, len(m.Cells))
		for b := range a {
			all = append(all, stat.WilcoxonOf(m.Sampled(a, b)).P)
			if !math.IsNaN(all[len(all)-1]) {
				tests++
			}
		}
	}
	if holm {
		all = stat.Holm(all)
	} else {
		tests = 1
	}
	for a := range p {
		p[a][a] = math.NaN()
		for b := range a {
			p[a][b], p[b][a] = all[0], all[0]
			all = all[1:]
		}
	}
	return p, max(1, tests)
}
