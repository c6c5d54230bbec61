package fuse

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
)

// A contest is what is fused: the ranked methods and the cases that compare some of them.
type contest struct {
	methods  []string // ids, sorted
	names    []string // what these are called: their labels
	at       []int    // their indices in the cases
	axes     []string // of the cases
	cases    []scoreCase
	quality  [][]float64 // by case and method, larger is better; NaN if absent
	leftOut  []omission  // cases that compare no ranked methods
	unranked []omission  // methods
	scores   int         // number of all scores
	twins    string      // a sentence on methods with equal scores, "" without any
}

// A scoreCase is one case with the means of its methods.
type scoreCase struct {
	name    string // "model=VGG-16 order=morf", as ids are called
	ids     []string
	measure stages.Measure
	scores.Means
}

// An omission is a case or a method that takes no part.
type omission struct {
	id           string // of a method
	name, reason string
	undefined    int // of a method: number of its scores, all of them undefined, or 0
}

// newContest chooses the cases and methods that can be ranked: methods that have been compared with each
// other, directly or through others. If methods fall into several such parts, the largest is ranked.
func newContest(ctx context.Context, rank string, label func(axis, id string) string,
	cells []stages.Data) (*contest, error) {
	all, err := scores.NewContest(ctx, nil, label, cells, "rank", rank)
	if err != nil {
		return nil, err
	}
	if slices.Contains(all.Competitors, "") {
		return nil, stages.BadField("rank", "some cells aren't on the axis %q", rank)
	}
	c := &contest{axes: all.Others}
	for _, d := range cells {
		c.scores += d.Items.Len()
	}
	var every []scoreCase
	distinct := 0
	for i := range all.Cases {
		k := scoreCase{name: caseName(all.Others, all.Cases[i].IDs, label), ids: all.Cases[i].IDs,
			measure: all.Cases[i].Measure}
		if k.Means, err = all.Cases[i].Means(); err != nil {
			return nil, fmt.Errorf("case %s: %w", k.name, err)
		}
		every = append(every, k)
		for _, cell := range all.Cases[i].Cells {
			if cell != nil {
				distinct++
			}
		}
	}
	if distinct < len(cells) {
		return nil, fmt.Errorf("%d cells have the ids of others", len(cells)-distinct)
	}
	alone := len(all.Competitors) == 1
	var wins [][]float64
	for _, k := range every {
		present := k.Present()
		switch {
		case len(present) > 1 || alone && len(present) == 1:
			c.cases = append(c.cases, k)
			wins = append(wins, k.Quality)
			continue
		case len(present) == 1:
			c.leftOut = append(c.leftOut, omission{name: k.name,
				reason: fmt.Sprintf("only %s has scores", all.Names[present[0]])})
		case allUndefined(k):
			c.leftOut = append(c.leftOut, omission{name: k.name, reason: "no score is defined"})
		default:
			c.leftOut = append(c.leftOut, omission{name: k.name,
				reason: "no image has a score of every method"})
		}
	}
	ranked := make([]bool, len(all.Competitors))
	if len(wins) > 0 {
		ranked = largest(stat.Parts(stat.Wins(wins)), c.cases)
	}
	twins := slices.DeleteFunc(all.Twins(), func(t scores.Twins) bool {
		return slices.ContainsFunc(t.Competitors, func(i int) bool { return !ranked[i] })
	})
	c.twins = scores.Sentence(twins, func(i int) string { return all.Names[i] })
	for i, method := range all.Competitors {
		if ranked[i] {
			c.methods, c.names = append(c.methods, method), append(c.names, all.Names[i])
			c.at = append(c.at, i)
			continue
		}
		undefined, defined := 0, 0
		for _, k := range every {
			undefined += k.Undefined[i]
			defined += k.Scores[i] - k.Undefined[i]
		}
		o := omission{id: method, name: all.Names[i], reason: "no case compares it with the others"}
		if defined == 0 && undefined > 0 {
			o.reason, o.undefined = fmt.Sprintf("all %d scores are undefined", undefined), undefined
		}
		c.unranked = append(c.unranked, o)
	}
	c.cases = slices.DeleteFunc(c.cases, func(k scoreCase) bool {
		if ranked[k.Present()[0]] {
			return false
		}
		c.leftOut = append(c.leftOut, omission{name: k.name, reason: "only methods that aren't ranked"})
		return true
	})
	for _, k := range c.cases {
		quality := make([]float64, len(c.at))
		for i, x := range c.at {
			quality[i] = k.Quality[x]
		}
		c.quality = append(c.quality, quality)
	}
	return c, nil
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

// warn reports what takes no part.
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
