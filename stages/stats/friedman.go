package stats

import (
	"cmp"
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

// FriedmanParams are the parameters of [Friedman].
type FriedmanParams struct {
	Rank  string  `yaml:"rank" axis:"scores" doc:"the axis to compare"`
	Alpha float64 `yaml:"alpha" doc:"the level of the tests" min:"0.0001" max:"0.5"`
}

// Friedman ranks the competitors in every block and tests whether mean ranks differ (Friedman 1937), with
// Nemenyi's critical difference (Demšar, "Statistical Comparisons of Classifiers over Multiple Data Sets",
// JMLR 2006).
var Friedman = stages.New(stages.Def[FriedmanParams]{
	Name: "stats/friedman",
	Doc: `mean ranks by Friedman's test, with critical differences

A block is one image in one case, a combination of the other collapsed axes: every
image that has a score of every competitor there. Competitors are ranked in each
block, 1 for the best, ties sharing their mean rank. Two competitors whose mean ranks
differ by less than the critical difference can't be told apart. The tests take blocks
as independent: of images that stand in many cases, p-values are too small, and one
case, or more images, say more. Cases with a missing competitor or without a common
direction are left out. The critical difference is Nemenyi's.
Friedman, JASA 1937; Demšar, JMLR 2006.`,
	Version:  3,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs: []stages.Port{{Name: "scores", Type: stages.Scores, Averages: true,
		Doc: "scores of all competitors in all cases"}},
	Outputs: []stages.Port{
		{Name: "table", Type: stages.TableType, Doc: "one row per competitor, best mean rank first"},
		claims.AnswerPort,
	},
	Defaults: FriedmanParams{Alpha: 0.05},
	Facts:    claims.AnswerFacts[FriedmanParams],
	Run:      runFriedman,
	Hooks:    func(p FriedmanParams) stages.Hooks { return stages.Hooks{Few: p.few} },
})

func (p FriedmanParams) few(in map[string]stages.Amount) error {
	k := competitors(in["scores"], p.Rank)
	n := in["scores"].Items
	for _, ids := range in["scores"].IDs {
		n *= ids
	}
	n /= max(1, k)
	if k < 2 || n == 0 || stat.CriticalDifference(k, n, p.Alpha) <= float64(k-1) {
		return nil
	}
	least := n + 1
	for stat.CriticalDifference(k, least, p.Alpha) > float64(k-1) {
		least++
	}
	return fmt.Errorf("with %s of %d competitors no mean ranks can be told apart at α = %g: it takes %d",
		english.Count(n, "block"), k, p.Alpha, least)
}

func runFriedman(ctx context.Context, p FriedmanParams, e *stages.Env) error {
	c, err := scores.NewContest(ctx, nil, e.Label, e.Ports["scores"], "rank", p.Rank)
	if err != nil {
		return err
	}
	unscored := c.DropUnscored()
	var blocks [][]float64
	var left []string
	cases := 0
	for i := range c.Cases {
		m := &c.Cases[i]
		made := blocksOf(m)
		if len(made) == 0 {
			left = append(left, m.Name)
			continue
		}
		cases++
		blocks = append(blocks, made...)
	}
	test, critical := stat.Friedman(blocks), math.NaN()
	if len(test.Rank) > 1 {
		critical = stat.CriticalDifference(len(test.Rank), test.Blocks, p.Alpha)
	}
	if test.Rank == nil {
		for range c.Competitors {
			test.Rank = append(test.Rank, math.NaN())
		}
	}
	order := make([]int, len(c.Competitors))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(test.Rank[a], test.Rank[b]) })
	tolerance := pTolerance(c.Cases)
	t := stages.Table{Title: "Mean ranks of " + c.Axis, Ranked: true, Keys: []string{c.Axis},
		Numbers: []stages.Column{
			{Name: "mean rank", Direction: stages.Lower, Tolerance: tolerance, Digits: 2},
			{Name: "critical difference", Tolerance: 1e-9, Digits: 3},
			{Name: "p against the best", Tolerance: tolerance, Digits: pDigits},
			{Name: "blocks", Unit: "blocks"},
			{Name: "chi2", Tolerance: 100 * tolerance, Digits: 2},
			{Name: "p", Tolerance: tolerance, Digits: pDigits},
		}}
	for _, i := range order {
		against := math.NaN()
		if i != order[0] && test.Blocks > 0 {
			against = stat.Nemenyi(test.Rank[i]-test.Rank[order[0]], len(order), test.Blocks)
		}
		t.Rows = append(t.Rows, stages.Row{Keys: []string{c.Competitors[i]},
			Numbers: numbers(test.Rank[i], critical, against, float64(test.Blocks), test.Chi2, test.P)})
	}
	e.Set("table", t.Encode())
	e.Set("answer", []byte(p.answer(c, test, order, critical, cases, left, unscored)))
	return nil
}

// blocksOf returns a row of values for every image that all competitors share, smaller is better, or nil if
// the case isn't comparable.
func blocksOf(m *scores.Case) [][]float64 {
	if !m.Comparable {
		return nil
	}
	shared := m.Shared()
	resolution := stat.Resolution(shared...)
	blocks := make([][]float64, len(shared[0]))
	for i := range blocks {
		for _, v := range shared {
			x := v[i]
			if m.Measure.Direction == stages.Higher {
				x = -x
			}
			blocks[i] = append(blocks[i], x)
		}
		blocks[i] = stat.Tied(blocks[i], resolution)
	}
	return blocks
}

// answer summarises the table in words.
func (p FriedmanParams) answer(c *scores.Contest, t stat.RankTest, order []int, critical float64, cases int,
	left, unscored []string) string {
	name := func(i int) string { return "**" + c.Names[i] + "**" }
	var s []string
	switch {
	case len(order) == 1:
		s = append(s, fmt.Sprintf("Only %s competes: there is nothing to rank.", name(order[0])))
	case t.Blocks == 0:
		s = append(s, "Nothing can be ranked: no "+english.Singular(c.Items)+" has a score of every "+
			"competitor in a case with a direction.")
	case math.IsNaN(t.P):
		s = append(s, fmt.Sprintf("All %d have equal scores on every %s.", len(order),
			english.Singular(c.Items)))
	default:
		first := order[0]
		where := english.CountOf(t.Blocks, c.Items)
		if cases > 1 {
			where = fmt.Sprintf("%d blocks (%s in %d cases)", t.Blocks, c.Items, cases)
		}
		s = append(s, fmt.Sprintf("%s has the best mean rank of %d, %.2f over %s.", name(first), len(order),
			t.Rank[first], where))
		verdict := "differ more than chance explains"
		if t.P > p.Alpha {
			verdict = "don't differ more than chance may explain"
		}
		s = append(s, fmt.Sprintf("The ranks %s (Friedman, χ² = %.3g, %s).", verdict, t.Chi2, pText(t.P)))
		var groups []string
		for _, g := range stat.Alike(t.Rank, critical) {
			var names []string
			for _, i := range g {
				names = append(names, name(i))
			}
			groups = append(groups, english.And(names))
		}
		if len(groups) == 0 {
			s = append(s, fmt.Sprintf("Every two can be told apart (Nemenyi, α = %g, critical difference "+
				"%.2f).", p.Alpha, critical))
		} else {
			s = append(s, fmt.Sprintf("Can't be told apart (Nemenyi, α = %g, critical difference %.2f): %s.",
				p.Alpha, critical, strings.Join(groups, "; ")))
		}
	}
	return strings.Join(append(s, excluded(c.Items, left, unscored)...), " ") + c.Seeded() + "\n"
}
