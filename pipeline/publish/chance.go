package publish

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A guess is the mean of a score that guessing has a mean of too.
type guess struct {
	cell         string
	mean, chance float64
	n            int
}

// What chances writes is told from the answer by these.
const warningMark = "> **Warning:** "

var (
	moreWarnings = regexp.MustCompile(`^> And [0-9]+ more\.$`)
	guessLine    = regexp.MustCompile(`^[^:]+: .* over [0-9]+ items?; guessing gives [^ ]+\.$`)
)

// told is how many of a stage's guesses are told one by one.
const told = 6

// chances says, before anything else, how scores compare with guessing. An answer about
// a net that guesses is no answer, so those that hardly do better come first, as a warning.
func (m *merge) chances(p printer) {
	of := map[string][]guess{} // by stage
	for _, c := range m.cells {
		if c.State != Done {
			continue
		}
		for _, s := range c.Scores {
			if s.Measure.Chance > 0 && s.Measure.Direction == stages.Higher {
				if g, ok := m.guess(c.Name, s); ok {
					of[c.Stage] = append(of[c.Stage], g)
				}
			}
		}
	}
	var warnings, lines []string
	for _, stage := range slices.Sorted(maps.Keys(of)) {
		all := of[stage]
		slices.SortStableFunc(all, func(a, b guess) int { return m.compareShown(a.cell, b.cell) })
		var each []string
		for _, g := range all {
			if !(g.mean >= 2*g.chance) {
				warnings = append(warnings, fmt.Sprintf(warningMark+"`%s` is %s, and guessing gives %s. What follows says little.\n", g.cell, brief(g.mean, 3), brief(g.chance, 3)))
			}
			_, place, _ := strings.Cut(strings.TrimSuffix(g.cell, "]"), "[")
			each = append(each, strings.TrimSpace(inline(place)+" "+brief(g.mean, 3)))
		}
		if len(all) > told {
			slices.SortStableFunc(all, func(a, b guess) int { return cmp.Compare(a.mean, b.mean) })
			low, high := all[0], all[len(all)-1]
			each = []string{fmt.Sprintf("from %s (`%s`) to %s (`%s`)", brief(low.mean, 3), low.cell, brief(high.mean, 3), high.cell)}
		}
		lines = append(lines, fmt.Sprintf("%s: %s over %s; guessing gives %s.\n", inline(stage), strings.Join(each, ", "), count(all[0].n, "item", "items"), brief(all[0].chance, 3)))
	}
	if len(warnings) > told {
		warnings = append(warnings[:told], fmt.Sprintf("> And %d more.\n", len(warnings)-told))
	}
	for _, s := range slices.Concat(warnings, lines) {
		p("%s\n", s)
	}
}

// guess returns the mean that the folder has of a cell's score.
func (m *merge) guess(cell string, s Score) (guess, bool) {
	for _, l := range m.lines {
		if l.cell != cell {
			continue
		}
		for _, score := range l.scores {
			if score.port == s.Port && !math.IsNaN(score.mean) {
				return guess{cell, score.mean, s.Measure.Chance, l.n}, true
			}
		}
	}
	return guess{}, false
}
