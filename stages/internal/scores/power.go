package scores

import (
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/stat"
)

// A Family is the tests among the competitors of a case whose number corrects their p-values.
type Family struct {
	Axis        string // of the competitors
	Competitors int
	Against     string  // [Pairs], [Best], or the id with which all others are compared
	Holm        bool    // p is corrected
	Level       float64 // of the corrected p
}

// Families of tests.
const (
	Pairs = "pairs" // all pairs
	Best  = "best"  // the best and each other
)

// Tests returns how many tests correct p, 1 without correction. Holm's first step divides the level by them.
func (f Family) Tests() int {
	switch {
	case !f.Holm:
		return 1
	case f.Against == Pairs:
		return max(1, f.Competitors*(f.Competitors-1)/2)
	}
	return max(1, f.Competitors-1)
}

// String names the test and its correction.
func (f Family) String() string {
	of := "for all pairs"
	switch {
	case !f.Holm:
		return fmt.Sprintf("Wilcoxon's signed-rank test at %g, uncorrected", f.Level)
	case f.Against == Best:
		of = "for the comparisons with the best alone"
	case f.Against != Pairs:
		of = "for the comparisons with " + f.Against
	}
	return fmt.Sprintf("Wilcoxon's signed-rank test at %g, corrected by Holm %s", f.Level, of)
}

// Least returns the number of items without which no difference is confirmed: with n that have all the same
// sign, the signed-rank test's p is 2^(1−n).
func (f Family) Least() int { return stat.LeastPairs(f.Level / float64(f.Tests())) }

// usual is the level that goes without saying.
const usual = 0.05

// half is the mean difference, in standard deviations of the differences, that Power speaks of.
const half = 0.5

// power is the probability with which it is confirmed.
const power = 0.8

// Needed returns how many items confirm a mean difference of half a standard deviation of the differences
// with a probability of 0.8, by [stat.Needed].
func (f Family) Needed() int {
	return int(stat.Needed(half, f.Level/float64(f.Tests()), power))
}

// Power says what so many items can confirm, which are images without a noun. By names the columns that split
// them into groups with tests of their own, of which each has fewer.
func (f Family) Power(of stages.Amount, by []string) stages.Power {
	if f.Competitors < 2 {
		return stages.Power{}
	}
	items, least, needed := stages.CommonItems([]string{of.Noun}), f.Least(), f.Needed()
	p := stages.Power{Nothing: of.Items < least, Enough: of.Items >= needed && len(by) == 0}
	if of.AtMost {
		p.Text = "at most "
	}
	p.Text += english.CountOf(of.Items, items)
	if len(by) > 0 {
		p.Text += " in groups by " + english.And(by)
	}
	p.Text += ", " + english.Count(f.Competitors, f.Axis)
	if f.Level != usual {
		p.Text += fmt.Sprintf(" at α = %g", f.Level)
	}
	p.Text += ": "
	// Two digits are as many as an approximation has.
	for needed >= 100 && needed%10 != 0 {
		needed++
	}
	each := ""
	if len(by) > 0 {
		each = " of a group"
	}
	switch {
	case p.Nothing:
		p.Text += "nothing can be confirmed, however large; "
	case p.Enough:
		p.Text += fmt.Sprintf("enough to confirm a difference of half a standard deviation (about %d)",
			needed)
		return p
	}
	p.Text += fmt.Sprintf("%d%s confirm a unanimous lead; about %d%s a difference of half a standard "+
		"deviation", least, each, needed, each)
	return p
}

// CompetitorsOf returns the number of ids that compete, given the axis that a parameter names: the only
// collapsed one if it names none.
func CompetitorsOf(a stages.Amount, axis string) (name string, n int) {
	if axis != "" || len(a.IDs) != 1 {
		return axis, a.IDs[axis]
	}
	for name, n = range a.IDs {
	}
	return name, n
}
