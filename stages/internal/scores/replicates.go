package scores

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/stat"
	"github.com/runexp/runexp/stages/interval"
)

// averaged joins the cells that differ in their seeds alone to one, in whose place every item has the mean of
// its scores: an item that has no defined score of some seed has none. So seeds lie inside items, and no test
// counts them. Scores that are the same for all seeds don't depend on them, and stay.
func averaged(cells []Cell, data []stages.Data) (out []Cell, err error) {
	var groups [][]*List
	for i := range cells {
		same := func(c Cell) bool { return slices.Equal(c.Coord, cells[i].Coord) }
		at := -1
		if len(data[i].Replicate) > 0 {
			at = slices.IndexFunc(out, same)
		}
		if at < 0 {
			at = len(out)
			out, groups = append(out, cells[i]), append(groups, nil)
		}
		groups[at] = append(groups[at], cells[i].Scores)
	}
	for i, lists := range groups {
		if !differ(lists) {
			continue
		}
		var common bool
		out[i].seeds = lists
		if out[i].Scores, out[i].Replicates, common = average(lists); !common {
			return nil, fmt.Errorf("the seeds have no %s in common, and scores are averaged over seeds item "+
				"by item: name the axis of the seeds in a parameter, or leave it out of over", out[i].Items)
		}
	}
	return out, nil
}

// differ reports whether lists of scores aren't all the same.
func differ(lists []*List) bool {
	first := lists[0]
	for _, l := range lists[1:] {
		if len(l.Values) != len(first.Values) {
			return true
		}
		for i, x := range first.Values {
			if y, ok := l.Of(first, i); !ok || math.Float64bits(x) != math.Float64bits(y) {
				return true
			}
		}
	}
	return false
}

// average returns the mean scores of all items, NaN for one without a defined score in some list, list by
// list the scores of the others, and whether the lists have an item in common.
func average(lists []*List) (mean *List, each [][]float64, common bool) {
	all := union(lists)
	mean = &List{names: all.names, Values: make([]float64, len(all.Values))}
	each = make([][]float64, len(lists))
	for i := range mean.Values {
		row := make([]float64, len(lists))
		defined, present := true, true
		for k, l := range lists {
			x, ok := l.Of(all, i)
			row[k], defined, present = x, defined && ok && !math.IsNaN(x), present && ok
		}
		common = common || present
		if mean.Values[i] = math.NaN(); defined {
			mean.Values[i], _ = stat.Mean(row)
			for k, x := range row {
				each[k] = append(each[k], x)
			}
		}
	}
	return mean, each, common
}

// union returns a list with the items of all lists, in the order of the first.
func union(lists []*List) *List {
	var ids []string
	known := map[string]bool{}
	for _, l := range lists {
		for i := range l.Values {
			if id := string(l.names.at(i)); !known[id] {
				known[id] = true
				ids = append(ids, id)
			}
		}
	}
	all := &List{Values: make([]float64, len(ids))}
	for i, id := range ids {
		all.name(i, id)
	}
	return all
}

// Seeds returns the number of seeds of a cell's scores, 1 if they don't depend on a seed.
func (c *Cell) Seeds() int { return max(1, len(c.Replicates)) }

// Seeded says over how many seeds scores are averaged, in a sentence with a space before it; "" if none are.
func Seeded(cells []*Cell) string {
	low, high, others := math.MaxInt, 0, ""
	for _, c := range cells {
		switch n := len(c.Replicates); {
		case n > 0:
			low, high = min(low, n), max(high, n)
		default:
			others = " that depend on a seed"
		}
	}
	if high == 0 {
		return ""
	}
	return fmt.Sprintf(" Scores%s are means over %s.", others, english.Span(low, high, "seeds"))
}

// Seeded says over how many seeds the scores of the contest are averaged, as the function [Seeded] does.
func (c *Contest) Seeded() string { return Seeded(c.Cells()) }

// SD returns the standard deviation over seeds of a statistic over items, with n − 1 in the denominator; NaN
// for scores that don't depend on a seed. Of exact scores of some items it is that of means, estimated.
func (c *Cell) SD(statistic func([]float64) float64) float64 {
	switch {
	case c.Replicates == nil:
		return math.NaN()
	case c.Exact != nil:
		return math.Sqrt(max(0, c.exactVariance()))
	}
	v := make([]float64, len(c.Replicates))
	for k, scores := range c.Replicates {
		v[k] = statistic(scores)
	}
	return math.Sqrt(variance(v))
}

// variance has n − 1 in the denominator.
func variance(v []float64) float64 {
	mean, n := stat.Mean(v)
	sum := 0.0
	for _, x := range v {
		sum += (x - mean) * (x - mean)
	}
	return sum / float64(n-1)
}

// exactVariance estimates the variance over seeds of the means of exact scores of all items, without bias:
// that of the estimates of these means, less what the second phase, the same items for all seeds, adds to it
// on average, by [interval.Sample.Errors]: Σₖ Var(θₖ − θ̄)/(K − 1), θ̄ the mean of the K estimates. It may be
// negative.
func (c *Cell) exactVariance() float64 {
	var estimates []float64
	var errors [][]float64
	for k, s := range c.seedSamples() {
		estimates, errors = append(estimates, s.Estimate()), append(errors, s.Errors())
		if len(errors[k]) == 0 {
			errors[k] = make([]float64, len(s.Exact)) // none
		}
	}
	total, added := variance(estimates), 0.0
	for i := range errors[0] {
		var ofItem []float64
		for k := range errors {
			ofItem = append(ofItem, errors[k][i])
		}
		added += variance(ofItem)
	}
	return total - added
}

// seedSamples returns, seed by seed, the scores of the items that have a defined one of every seed.
func (c *Cell) seedSamples() (all []interval.Sample) {
	where := func(v, defined float64) float64 {
		if math.IsNaN(defined) {
			return math.NaN()
		}
		return v
	}
	for k, l := range c.seeds {
		s := interval.Sample{Phases: c.Exact.Phases}
		for i := range c.Scores.Values {
			x, _ := l.Of(c.Scores, i)
			s.Cheap = append(s.Cheap, where(x, c.Scores.Values[i]))
			s.Exact = append(s.Exact, where(c.Exact.seeds[k][i], c.Exact.Values[i]))
		}
		all = append(all, s)
	}
	return all
}
