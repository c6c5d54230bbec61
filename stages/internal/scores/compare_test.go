package scores

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestFalseAlarms: of experiments with equal methods, at most 5 % and 3 standard errors find a difference
// from the first method, or from the one that comes out best.
func TestFalseAlarms(t *testing.T) {
	const experiments, methods, images, alpha = 1000, 6, 24, 0.05
	limit := experiments*alpha + 3*math.Sqrt(experiments*alpha*(1-alpha))
	r := rand.New(rand.NewPCG(8, 9))
	first, best, uncorrected := 0, 0, 0
	for range experiments {
		m := Case{Measure: stages.Measure{Direction: stages.Higher}, Comparable: true}
		shared := &names{ends: make([]uint32, images)}
		for range methods {
			m.Cells = append(m.Cells, &Cell{Measure: m.Measure, Scores: &List{names: shared}})
		}
		for range images {
			level := r.NormFloat64()
			for _, c := range m.Cells {
				c.Scores.Values = append(c.Scores.Values, level+r.ExpFloat64())
			}
		}
		alarm := func(reference int, chosen, holm bool) int {
			all, _ := m.Compare(reference, chosen, holm)
			if slices.ContainsFunc(all, func(c Comparison) bool { return c.P <= alpha }) {
				return 1
			}
			return 0
		}
		first += alarm(0, false, true)
		best += alarm(m.Best(), true, true)
		uncorrected += alarm(0, false, false)
	}
	t.Logf("of %d experiments %d, of the best %d, uncorrected %d", experiments, first, best, uncorrected)
	if float64(first) > limit || float64(best) > limit {
		t.Errorf("%d and %d false alarms, want at most %.0f", first, best, limit)
	}
	if float64(uncorrected) < limit {
		t.Errorf("%d false alarms without correction: the test can't fail", uncorrected)
	}
}
