package scores

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/stat"
)

// A Comparison is the signed-rank test of a competitor's scores minus the reference's, over the images that
// have a defined score of both.
type Comparison struct {
	Competitor int
	N          int     // images
	Mean       float64 // of the differences; NaN without images
	Effect     float64 // d_z of the differences
	Test       stat.SignedRank
	P          float64 // corrected for the number of comparisons
}

// Compare tests all competitors that have a cell against the reference, corrected by Holm if holm is set.
// chosen tells that the reference was chosen by these scores. The correction then counts all pairs of
// competitors: against the best of equal ones, tests that count themselves alone have false alarms in 9 of
// 100 experiments instead of 5. tests is the number that is counted, 1 without correction.
func (m *Case) Compare(reference int, chosen, holm bool) (all []Comparison, tests int) {
	var p []float64
	for i, c := range m.Cells {
		if i == reference || c == nil {
			continue
		}
		d := m.Differences(i, reference)
		mean, n := stat.Mean(d)
		test := stat.Wilcoxon(d)
		all = append(all, Comparison{i, n, mean, stat.CohenD(d), test, test.P})
		p = append(p, test.P)
	}
	if !holm {
		return all, 1
	}
	for a := range m.Cells {
		for b := range a {
			if chosen && a != reference && b != reference && m.Cells[a] != nil && m.Cells[b] != nil {
				p = append(p, stat.Wilcoxon(m.Differences(a, b)).P)
			}
		}
	}
	corrected := stat.Holm(p)
	for k := range all {
		all[k].P = corrected[k]
	}
	return all, max(1, len(slices.DeleteFunc(p, func(x float64) bool { return x != x })))
}
