package fuse

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
)

// RankingsParams are the parameters of [Rankings].
type RankingsParams struct{ Params }

// Rankings compares Meta-Rank with other fusions of rankings.
var Rankings = stages.New(stages.Def[RankingsParams]{
	Name: "fuse/rankings",
	Doc: `several fusions of many rankings side by side

Meta-Rank, Borda, Kemeny, Bradley-Terry and Copeland combine the rankings of many cases,
of the same pairwise comparisons as in fuse/meta-rank; Kendall's τ-b tells how far they
agree. Borda: the share of comparisons won. Kemeny: the order that contradicts the fewest
comparisons; exact for up to 14 methods, a local optimum for more, which the answer
tells; places are means over all such orders. Bradley-Terry: the strengths that make the
comparisons most likely, with half a win added on either side of every pair. Copeland:
the share of rivals beaten in most cases. Duan et al., ECCV 2024; Kemeny, "Mathematics
without Numbers", Daedalus 1959; Bradley and Terry, Biometrika 1952.
` + scores.ExactDoc,
	Version:  5,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs: append([]stages.Port{{Name: "scores", Type: stages.Scores, Averages: true,
		Doc: "scores of all methods in all cases"}}, scores.ExactPorts("scores", "rank")...),
	Outputs: []stages.Port{
		{Name: "ranking", Type: stages.TableType,
			Doc: "the methods in Meta-Rank's order: their rank by every fusion, and its numbers"},
		{Name: "agreement", Type: stages.TableType, Doc: "Kendall's τ-b of every two fusions"},
		claims.AnswerPort,
	},
	Defaults: RankingsParams{defaults()},
	Facts:    claims.AnswerFacts[RankingsParams],
	Check:    func(p RankingsParams, wired func(string) bool) error { return p.CheckExactly(wired) },
	Hooks:    func(RankingsParams) stages.Hooks { return stages.Hooks{Present: present} },
	Run: func(ctx context.Context, p RankingsParams, e *stages.Env) error {
		c, err := newContest(ctx, p.Params, e)
		if err != nil {
			return err
		}
		c.warn(e)
		all, exact := fusions(c, p)
		c.setStays(stat.Fuse(c.quality, p.smoothing()).Rank, p.smoothing(), e.SharedRand("stays"))
		e.Set("ranking", comparedTable(p, c, all).Encode())
		e.Set("agreement", agreementTable(all).Encode())
		e.Set("answer", []byte(comparedAnswer(c, all, exact)))
		return nil
	},
})

// A fusion is one way to combine rankings, with its result by method.
type fusion struct {
	name, label string
	rank        []float64 // 1 for the best
	number      string    // name of the score
	score       []float64 // larger is better; nil if there is none but the rank
}

// fusions computes all fusions, and reports whether Kemeny's is exact.
func fusions(c *contest, p RankingsParams) (all []fusion, exact bool) {
	if len(c.methods) == 0 {
		return nil, true
	}
	f := stat.Fuse(c.quality, p.smoothing())
	kemeny, exact := stat.Kemeny(f.Wins)
	byScore := func(name, label, number string, score []float64) fusion {
		rank := make([]float64, len(score))
		for i, place := range stat.Places(score) {
			rank[i] = float64(place)
		}
		return fusion{name, label, rank, number, score}
	}
	return []fusion{
		byScore("meta-rank", "Meta-Rank", "kappa", f.Kappa),
		byScore("borda", "Borda", "share won", stat.Borda(f.Wins)),
		{"kemeny", "Kemeny", kemeny, "", nil},
		byScore("bradley-terry", "Bradley–Terry", "strength", stat.BradleyTerry(f.Wins)),
		byScore("copeland", "Copeland", "share beaten", stat.Copeland(f.Wins)),
	}, exact
}

func comparedTable(p RankingsParams, c *contest, all []fusion) stages.Table {
	t := stages.Table{Title: "Fusions of the rankings of " + p.Rank + c.exact.Title(), Ranked: true,
		Keys: []string{p.Rank}}
	for _, f := range all {
		digits := 0
		if f.score == nil {
			digits = 1 // a mean over several orders
		}
		t.Numbers = append(t.Numbers, stages.Column{Name: f.name, Direction: stages.Lower, Digits: digits,
			Tolerance: kappaTolerance})
	}
	for _, f := range all {
		if f.score != nil {
			t.Numbers = append(t.Numbers, stages.Column{Name: f.number, Direction: stages.Higher, Digits: 4,
				Tolerance: strengthTolerance})
		}
	}
	t.Numbers = append(t.Numbers, stages.Column{Name: "cases", Unit: "cases"},
		stages.Column{Name: "n", Unit: c.items}, stages.Column{Name: "undefined", Unit: "scores"})
	order := make([]int, len(c.methods))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(all[0].rank[a] - all[0].rank[b]) })
	for _, i := range order {
		row := stages.Row{Keys: []string{c.methods[i]}}
		for _, f := range all {
			row.Numbers = append(row.Numbers, stages.Number(f.rank[i]))
		}
		for _, f := range all {
			if f.score != nil {
				row.Numbers = append(row.Numbers, stages.Number(f.score[i]))
			}
		}
		cases, images := c.images(i)
		row.Numbers = append(row.Numbers, stages.Number(cases), stages.Number(images),
			stages.Number(c.undefined(i)))
		t.Rows = append(t.Rows, row)
	}
	t.Rows = append(t.Rows, unrankedRows(c, len(t.Numbers), 3)...)
	return t
}

// The strengths of Bradley and Terry are rounded at the ninth decimal.
const strengthTolerance = 1e-8

func agreementTable(all []fusion) stages.Table {
	t := stages.Table{Title: "Agreement of the fusions", Keys: []string{"fusion", "against"},
		Numbers: []stages.Column{{Name: "tau", Direction: stages.Higher, Tolerance: kappaTolerance,
			Digits: 2}}}
	for i, f := range all {
		for _, g := range all[:i] {
			t.Rows = append(t.Rows, stages.Row{Keys: []string{g.name, f.name},
				Numbers: []stages.Number{stages.Number(stat.Kendall(g.rank, f.rank))}})
		}
	}
	return t
}

// comparedAnswer says who is first by which fusion, and how far they agree.
func comparedAnswer(c *contest, all []fusion, exact bool) string {
	if len(c.methods) < 2 {
		return "No case compares two methods: there is nothing to rank." + c.remarks() + "\n"
	}
	var firsts, fused []string // the methods that come first; by which fusions
	for _, f := range all {
		var best []string
		for i, rank := range f.rank {
			if rank == slices.Min(f.rank) {
				best = append(best, "**"+c.names[i]+"**")
			}
		}
		text := best[0]
		if len(best) > 1 {
			text = english.And(best)
		}
		if i := slices.Index(firsts, text); i >= 0 {
			fused[i] += ", " + f.label
			continue
		}
		firsts, fused = append(firsts, text), append(fused, f.label)
	}
	var s strings.Builder
	if len(firsts) == 1 {
		fmt.Fprintf(&s, "All %d fusions put %s first", len(all), firsts[0])
	} else {
		for i, first := range firsts {
			if i > 0 {
				s.WriteString("; ")
			}
			fmt.Fprintf(&s, "%s is first by %s", first, fused[i])
		}
	}
	fmt.Fprintf(&s, ", of %d methods in %s, %s.", len(c.methods), c.casesText(), c.itemsText())
	sum, n, least, which := 0.0, 0, math.Inf(1), ""
	for i, f := range all {
		for _, g := range all[:i] {
			if tau := stat.Kendall(f.rank, g.rank); !math.IsNaN(tau) {
				sum += tau
				n++
				if tau < least {
					least, which = tau, g.label+" and "+f.label
				}
			}
		}
	}
	switch {
	case n == 0:
	case least == 1:
		s.WriteString(" They agree on the whole order.")
	default:
		fmt.Fprintf(&s, " Their orders have a mean Kendall τ of %.2f; %s agree least (%.2f).", sum/float64(n),
			which, least)
	}
	if !exact {
		fmt.Fprintf(&s, " Kemeny's order isn't exact, but a local optimum: more than %d methods compete.",
			stat.KemenyExact)
	}
	return s.String() + c.remarks() + "\n"
}
