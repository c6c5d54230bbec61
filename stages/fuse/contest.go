package fuse

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
)

// A contest is the input of a fusion: the ranked methods and the cases that compare some of them.
type contest struct {
	items    string   // what has scores: "images"
	methods  []string // ids, sorted
	names    []string // their labels
	at       []int    // their indices in the cases
	axes     []string // of the cases
	cases    []scoreCase
	quality  [][]float64 // by case and method, larger is better; NaN if absent
	leftOut  []omission  // cases that compare no ranked methods
	unranked []omission  // methods
	scores   int         // number of all scores
	twins    string      // a sentence on methods with equal scores, "" without any
	seeds    string      // a sentence on the seeds over which scores are averaged, "" without any
	exact    *scores.Exactness
	redraw   *scores.Redraw // nil where means are no estimates
	stays    string         // how sure the order is that was estimated, with a space before it; "" for none
}

// A scoreCase is one case with the means of its methods.
type scoreCase struct {
	name    string // "model=VGG-16 order=morf", as ids are called
	ids     []string
	measure stages.Measure
	scores.Means
	of *scores.Case
}

// An omission is a case or a method that takes no part.
type omission struct {
	id           string // of a method
	name, reason string
	undefined    int // of a method: number of its scores, all of them undefined, or 0
}

// newContest chooses the cases and methods that can be ranked: methods that have been compared with each
// other, directly or through others. If methods fall into several such parts, the largest is ranked.
func newContest(ctx context.Context, p Params, e *stages.Env) (*contest, error) {
	label := e.Label
	all, err := scores.NewContest(ctx, nil, label, e.Ports["scores"], "rank", p.Rank)
	if err != nil {
		return nil, err
	}
	if slices.Contains(all.Competitors, "") {
		return nil, stages.BadField("rank", "some cells aren't on the axis %q", p.Rank)
	}
	exact, err := p.AddExact(ctx, e, "scores", all.Cells())
	if err != nil {
		return nil, err
	}
	c := &contest{exact: exact, axes: all.Others, items: all.Items, seeds: all.Seeded()}
	for _, cell := range all.Cells() {
		c.scores += len(cell.Scores.Values)
	}
	every, err := casesWithMeans(all, label, all.Loaded)
	if err != nil {
		return nil, err
	}
	c.compare(all, every)
	ranked := c.largestPart(len(all.Competitors))
	twins := slices.DeleteFunc(all.Twins(), func(t scores.Twins) bool {
		return slices.ContainsFunc(t.Competitors, func(i int) bool { return !ranked[i] })
	})
	c.twins = scores.Sentence(twins, c.items, func(i int) string { return all.Names[i] })
	for i, method := range all.Competitors {
		if ranked[i] {
			c.methods, c.names = append(c.methods, method), append(c.names, all.Names[i])
			c.at = append(c.at, i)
		} else {
			c.unranked = append(c.unranked, unranked(method, all.Names[i], i, every))
		}
	}
	c.cases = slices.DeleteFunc(c.cases, func(k scoreCase) bool {
		if ranked[k.Present()[0]] {
			return false
		}
		c.leftOut = append(c.leftOut, omission{name: k.name, reason: "only methods that aren't ranked"})
		return true
	})
	var of []*scores.Case
	var means []scores.Means
	var quality [][]float64
	for _, k := range c.cases {
		of, means, quality = append(of, k.of), append(means, k.Means), append(quality, k.Quality)
	}
	c.quality, c.redraw = c.ranked(quality), scores.NewRedraw(of, means)
	return c, nil
}

// ranked returns, case by case, the numbers of the ranked methods among those of all.
func (c *contest) ranked(all [][]float64) (out [][]float64) {
	for _, of := range all {
		ranked := make([]float64, len(c.at))
		for i, x := range c.at {
			ranked[i] = of[x]
		}
		out = append(out, ranked)
	}
	return out
}

// casesWithMeans returns all cases of a contest, and an error if two of its cells have the same ids.
func casesWithMeans(all *scores.Contest, label func(axis, id string) string, cells int) ([]scoreCase, error) {
	every := make([]scoreCase, len(all.Cases))
	distinct := 0
	for i := range all.Cases {
		from, k := &all.Cases[i], &every[i]
		k.of = from
		k.name, k.ids, k.measure = caseName(all.Others, from.IDs, label), from.IDs, from.Measure
		var err error
		if k.Means, err = from.Means(); err != nil {
			return nil, fmt.Errorf("case %s: %w", k.name, err)
		}
		for _, cell := range from.Cells {
			if cell != nil {
				distinct++
			}
		}
	}
	if distinct < cells {
		return nil, fmt.Errorf("%d cells have the ids of others", cells-distinct)
	}
	return every, nil
}

// compare keeps the cases that compare methods, and leaves out the others. If there is only one method, it
// keeps all cases that score it.
func (c *contest) compare(all *scores.Contest, every []scoreCase) {
	alone := len(all.Competitors) == 1
	for _, k := range every {
		present := k.Present()
		o := omission{name: k.name}
		switch {
		case len(present) > 1 || alone && len(present) == 1:
			c.cases = append(c.cases, k)
			continue
		case len(present) == 1:
			o.reason = fmt.Sprintf("only %s has scores", all.Names[present[0]])
		case allUndefined(k):
			o.reason = "no score is defined"
		default:
			o.reason = "no " + english.Singular(c.items) + " has a score of every method"
		}
		c.leftOut = append(c.leftOut, o)
	}
}

// largestPart reports which of n methods are ranked: those of the largest part that the cases compare.
func (c *contest) largestPart(n int) []bool {
	if len(c.cases) == 0 {
		return make([]bool, n)
	}
	var wins [][]float64
	for _, k := range c.cases {
		wins = append(wins, k.Quality)
	}
	return largest(stat.Parts(stat.Wins(wins)), c.cases)
}

// unranked returns why method i takes no part.
func unranked(id, name string, i int, every []scoreCase) omission {
	undefined, defined := 0, 0
	for _, k := range every {
		undefined += k.Undefined[i]
		defined += k.Scores[i] - k.Undefined[i]
	}
	if defined == 0 && undefined > 0 {
		return omission{id, name, fmt.Sprintf("all %d scores are undefined", undefined), undefined}
	}
	return omission{id: id, name: name, reason: "no case compares it with the others"}
}

func caseName(axes, ids []string, label func(axis, id string) string) string {
	if len(axes) == 0 {
		return "(the only one)"
	}
	parts := make([]string, len(axes))
	for i, axis := range axes {
		parts[i] = axis + "=" + label(axis, ids[i])
	}
	return strings.Join(parts, " ")
}

func allUndefined(k scoreCase) bool {
	for i := range k.Scores {
		if k.Undefined[i] < k.Scores[i] {
			return false
		}
	}
	return true
}

// largest reports which methods are of the largest part, the first of several, and take part in a case.
func largest(part []int, cases []scoreCase) []bool {
	sizes := make([]int, slices.Max(part)+1)
	for _, p := range part {
		sizes[p]++
	}
	most := slices.Index(sizes, slices.Max(sizes))
	in := make([]bool, len(part))
	for i := range part {
		in[i] = part[i] == most &&
			slices.ContainsFunc(cases, func(k scoreCase) bool { return slices.Contains(k.Present(), i) })
	}
	return in
}

// warn reports excluded methods and cases.
func (c *contest) warn(e *stages.Env) {
	for _, o := range c.leftOut {
		e.Warn("case %s is left out: %s", o.name, o.reason)
	}
	for _, o := range c.unranked {
		e.Warn("%s isn't ranked: %s", o.name, o.reason)
	}
}

// undefined returns the number of undefined scores of a method in the cases.
func (c *contest) undefined(method int) (n int) {
	for _, k := range c.cases {
		n += k.Undefined[c.at[method]]
	}
	return n
}

// images returns in how many cases a method takes part, and over how many images these are together.
func (c *contest) images(method int) (cases, n int) {
	for i, k := range c.cases {
		if c.present(i, method) {
			cases++
			n += k.N
		}
	}
	return cases, n
}

func (c *contest) present(k, method int) bool { return !math.IsNaN(c.quality[k][method]) }
