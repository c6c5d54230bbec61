package stats

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
)

// ConsistencyParams are the parameters of [Consistency].
type ConsistencyParams struct {
	Rank    string   `yaml:"rank" axis:"scores" doc:"the axis whose ids are ranked in every case, usually method"`
	Between []string `yaml:"between" axis:"scores,optional" doc:"the axes in which compared cases may differ; default: all but rank. Cases that differ in another axis aren't compared"`
	claims.List
}

// Known rejects claims that name unknown ids.
func (p ConsistencyParams) Known(ids map[string][]string) error {
	ids = but(ids, p.Rank)
	if err := p.List.Known(ids, correlation...); err != nil {
		return err
	}
	between := p.Between
	if len(between) == 0 {
		between = slices.Sorted(maps.Keys(ids))
	}
	for _, text := range p.Claims {
		c, err := claims.Parse(text)
		if err != nil {
			return err
		}
		for _, axis := range between {
			if slices.Contains(ids[axis], c.Subject) {
				return &stages.FieldError{Field: "claims", Name: text, Err: stages.BadField("claims",
					"the claim %q compares ids of the axis %s, and a pair of cases has two of them", text,
					axis)}
			}
		}
	}
	return nil
}

// Consistency measures how much the rankings of cases agree, as figure 3 of Duan et al., "On the Evaluation
// Consistency of Attribution-based Explanations", ECCV 2024.
var Consistency = stages.New(stages.Def[ConsistencyParams]{
	Name: "stats/consistency",
	Doc: `agreement of cases on the ranking: Spearman's ρ

A case is a combination of the collapsed axes but rank; its ranking is by the mean over
the images for which all ids present in the case have a score. Every two cases that are
equal on the axes outside between are compared, over the ids that both have: ρ above 0.8
is called strong, 0.6 to 0.8 moderate, below weak. moved counts the ids with another
rank. The answer also counts the pairs that differ in one axis only. A claim such as
correlation > 0.8 where order=lerf is tested for every pair; the condition then holds for
both cases.
Duan et al., ECCV 2024, figure 3.`,
	Version:  5,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs: []stages.Port{{Name: "scores", Type: stages.Scores, Averages: true,
		Doc: "scores of all ids in all cases"}},
	Outputs: []stages.Port{
		{Name: "table", Type: stages.TableType,
			Doc: "a row for every two cases: the ids of one, and under against those of the other"},
		claims.Port,
		claims.AnswerPort,
	},
	Facts: claims.AnswerFacts[ConsistencyParams],
	Run:   runConsistency,
})

func runConsistency(ctx context.Context, p ConsistencyParams, e *stages.Env) error {
	c, err := scores.NewContest(ctx, nil, e.Label, e.Ports["scores"], "rank", p.Rank)
	if err != nil {
		return err
	}
	between := p.Between
	if len(between) == 0 {
		between = c.Others
	}
	for _, axis := range between {
		if !slices.Contains(c.Others, axis) {
			return stages.BadField("between", "the axis %q isn't collapsed, or is ranked; other axes: %s",
				axis,
				strings.Join(c.Others, ", "))
		}
	}
	pairs, err := compare(c, between)
	if err != nil {
		return err
	}
	table := consistencyTable(c, between, pairs)
	found := &claims.Results{Axes: slices.Concat(scores.Without(c.Others, between...), between, between),
		Names: correlation, Label: e.Label}
	for i, row := range table.Rows {
		found.Add(row.Keys, pairs[i].rho)
	}
	e.Set("table", table.Encode())
	words := claims.Words{Verb: "have", More: "a larger correlation", Digits: 2, Tests: "pairs of cases"}
	return toldBefore(e, p.List, found, table.Numbers[0], words, consistencyAnswer(c, between, pairs))
}

// A pairOfCases is two cases with the agreement of their rankings.
type pairOfCases struct {
	a, b  int      // cases
	axes  []string // in which they differ
	rho   float64  // NaN if undefined
	n     int      // number of ids that both have
	moved int      // number of these with another rank
}

// compare compares every two cases that differ in axes of between alone.
func compare(c *scores.Contest, between []string) ([]pairOfCases, error) {
	quality := make([][]float64, len(c.Cases))
	for i := range c.Cases {
		means, err := c.Cases[i].Means()
		if err != nil {
			return nil, fmt.Errorf("case %s: %w", c.Cases[i].Name, err)
		}
		quality[i] = means.Quality
	}
	var pairs []pairOfCases
	for a := range c.Cases {
		for b := range a {
			pair := pairOfCases{a: a, b: b}
			for i, axis := range c.Others {
				if c.Cases[a].IDs[i] != c.Cases[b].IDs[i] {
					pair.axes = append(pair.axes, axis)
				}
			}
			if slices.ContainsFunc(pair.axes, func(axis string) bool {
				return !slices.Contains(between,
					axis)
			}) {
				continue
			}
			pair.rho, pair.n = stat.SpearmanOfCommon(quality[a], quality[b])
			// Rounded, so that 0.8 is 0.8 where it's compared.
			pair.rho = math.Round(pair.rho*1e12) / 1e12
			pair.moved = moved(quality[a], quality[b])
			pairs = append(pairs, pair)
		}
	}
	return pairs, nil
}

// moved counts the ids that both cases have with another rank among these.
func moved(a, b []float64) (n int) {
	var x, y []float64
	for i := range a {
		if !math.IsNaN(a[i]) && !math.IsNaN(b[i]) {
			x, y = append(x, a[i]), append(y, b[i])
		}
	}
	other := stat.Ranks(y)
	for i, rank := range stat.Ranks(x) {
		if rank != other[i] {
			n++
		}
	}
	return n
}

func consistencyTable(c *scores.Contest, between []string, pairs []pairOfCases) stages.Table {
	fixed := scores.Without(c.Others, between...)
	keys := slices.Concat(fixed, between)
	for _, axis := range between {
		keys = append(keys, "against "+axis)
	}
	t := stages.Table{Title: "Spearman's ρ between the rankings of " + c.Axis, Keys: keys,
		Numbers: []stages.Column{
			{Name: "rho", Direction: stages.Higher, Tolerance: 1e-9, Digits: 2},
			{Name: "n", Unit: "ranked"},
			{Name: "moved", Unit: "ranked", Direction: stages.Lower},
		}}
	ids := func(k int, axes []string) []string {
		out := make([]string, len(axes))
		for i, axis := range axes {
			out[i] = c.Cases[k].IDs[slices.Index(c.Others, axis)]
		}
		return out
	}
	for _, p := range pairs {
		t.Rows = append(t.Rows, stages.Row{
			Keys:    slices.Concat(ids(p.a, fixed), ids(p.a, between), ids(p.b, between)),
			Numbers: numbers(p.rho, float64(p.n), float64(p.moved))})
	}
	return t
}

// consistencyAnswer counts strong, moderate and weak agreement, of all pairs and of those that differ in one
// axis.
func consistencyAnswer(c *scores.Contest, between []string, pairs []pairOfCases) string {
	if len(pairs) == 0 {
		return "No two cases differ in " + english.And(between) + " alone: there is nothing to compare.\n"
	}
	text := fmt.Sprintf("The rankings of %s agree %s.", english.Count(len(c.Competitors), c.Axis),
		strengths(pairs, "of cases "))
	if len(between) > 1 {
		for _, axis := range between {
			var of []pairOfCases
			for _, p := range pairs {
				if len(p.axes) == 1 && p.axes[0] == axis {
					of = append(of, p)
				}
			}
			if len(of) > 0 {
				text += fmt.Sprintf(" Where only %s differs, they agree %s.", axis, strengths(of, ""))
			}
		}
	}
	return text + c.Seeded() + "\n"
}

// strengths counts pairs by how far they agree: "strongly (ρ > 0.8) in 2 of 18 pairs of cases, …".
func strengths(pairs []pairOfCases, of string) string {
	strong, moderate, weak, undefined, sum := 0, 0, 0, 0, 0.0
	for _, p := range pairs {
		switch {
		case math.IsNaN(p.rho):
			undefined++
			continue
		case p.rho > 0.8:
			strong++
		case p.rho >= 0.6:
			moderate++
		default:
			weak++
		}
		sum += p.rho
	}
	plural := "s"
	if len(pairs) == 1 {
		plural = ""
	}
	text := fmt.Sprintf("strongly (ρ > 0.8) in %d of %d pair%s %s", strong, len(pairs), plural, of)
	text = strings.TrimSuffix(text, " ") + fmt.Sprintf(", moderately (0.6 to 0.8) in %d and weakly in %d",
		moderate, weak)
	if undefined > 0 {
		text += fmt.Sprintf("; ρ is undefined in %d", undefined)
	}
	if defined := len(pairs) - undefined; defined > 0 {
		text += fmt.Sprintf("; the mean ρ is %.2f", sum/float64(defined))
	}
	return text
}
