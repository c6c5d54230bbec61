package stats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
)

// AgreementParams are the parameters of [Agreement].
type AgreementParams struct {
	Rank      string  `yaml:"rank" axis:"scores" doc:"the axis whose ids are ranked, usually method"`
	Tolerance float64 `yaml:"tolerance" doc:"means of the reference that differ by at most so much are equal" min:"0"`
	claims.List
}

// Known rejects claims that name unknown ids.
func (p AgreementParams) Known(ids map[string][]string) error {
	return p.List.Known(but(ids, p.Rank), correlation...)
}

// Agreement is Spearman's correlation of a metric's ranking with one that is known to be right, as Duan et
// al., "On the Evaluation Consistency of Attribution-based Explanations", ECCV 2024, compare the rankings of
// two settings. Its scores are those of a metric, and their items the nets on which it ranks.
var Agreement = stages.New(stages.Def[AgreementParams]{
	Name: "stats/agreement",
	Doc: `agreement of a metric's ranking with the truth

Spearman's ρ between the ranking of methods by their mean scores and that by reference,
such as score/truth on nets whose true attribution is known: one for each combination of
the other collapsed axes, such as nets, over the methods that both rank. Combinations
without a reference are left out. Means are over the images with a score of every method
that has one, and better is better, larger or smaller. pairs is the share of the pairs of
methods with unequal reference that the metric orders like it, where equal ones count
half: 1/2 by chance. Numbers are items, so that report/leaderboard ranks metrics by them,
over nets. Spearman 1904; Duan et al., ECCV 2024, compare rankings by ρ, and Kocmi et
al., WMT 2021, metrics by pairs.`,
	Definition: stages.Definition{
		Formula: "Spearman's ρ between the methods' mean scores by the metric and by the reference, signed " +
			"so that better is larger; equal means share the mean of their ranks. pairs: the mean, over " +
			"pairs of methods with unequal reference, of 1 for the same order, ½ for equal means, 0 for " +
			"the opposite order",
		Unit:        "a method, in each combination of the other collapsed axes",
		Operator:    "none",
		Response:    "the scores of a metric",
		Reference:   "the scores on the port reference",
		Aggregation: "one ρ, of means over the images that have a score of every method with a score",
		Randomness:  "none",
		Undefined: "for fewer than two methods, and where the reference gives all of them the same mean; ρ " +
			"also where the metric does",
	},
	Version:  1,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs: []stages.Port{
		{Name: "scores", Type: stages.Scores, Averages: true, Doc: "scores of all methods by a metric"},
		{Name: "reference", Type: stages.Scores, Averages: true,
			Doc: "scores of the same methods, to compare with"},
	},
	Outputs: []stages.Port{
		{Name: "agreement", Type: stages.Scores, Doc: "ρ: an item for each combination"},
		{Name: "pairs", Type: stages.Scores, Doc: "the share of pairs in the same order, likewise"},
		{Name: "table", Type: stages.TableType, Doc: "ρ, pairs, methods, and those with another rank"},
		claims.Port,
		claims.AnswerPort,
	},
	Facts: func(_ AgreementParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Direction: stages.Higher, Low: -1, High: 1, Tolerance: rankTolerance,
			ItemTolerance: 0.1}
		pairs := m
		pairs.Unit, pairs.Low = "share", 0
		return map[string]stages.Facts{"agreement": m.Facts(combinations(in)),
			"pairs": pairs.Facts(combinations(in)), "answer": {"ext": "md"}}, nil
	},
	Run: runAgreement,
})

func runAgreement(ctx context.Context, p AgreementParams, e *stages.Env) error {
	var contests [2]*scores.Contest
	for k, port := range []string{"scores", "reference"} {
		var err error
		contests[k], err = scores.NewContest(ctx, nil, e.Label, e.Ports[port], "rank", p.Rank)
		if err != nil {
			return fmt.Errorf("port %s: %w", port, err)
		}
	}
	ranked, right := contests[0], contests[1]
	if !slices.Equal(ranked.Others, right.Others) {
		return fmt.Errorf("scores have the axes %q, and reference has %q: collapse the same axes of both",
			ranked.Axes(), right.Axes())
	}
	t := stages.Table{Title: "Agreement on the ranking of " + ranked.Axis, Keys: ranked.Others,
		Numbers: []stages.Column{
			{Name: "rho", Direction: stages.Higher, Tolerance: rankTolerance, Digits: 2},
			{Name: "pairs", Unit: "share", Direction: stages.Higher, Tolerance: rankTolerance, Digits: 2},
			{Name: "n", Unit: "ranked"},
			{Name: "moved", Unit: "ranked", Direction: stages.Lower},
		}}
	found := &claims.Results{Axes: ranked.Others, Names: correlation, Label: e.Label}
	for i := range ranked.Cases {
		m := &ranked.Cases[i]
		at := slices.IndexFunc(right.Cases, func(c scores.Case) bool { return slices.Equal(c.IDs, m.IDs) })
		if at < 0 {
			continue
		}
		a, b, err := qualities(ranked, right, m, &right.Cases[at])
		if err != nil {
			return fmt.Errorf("%s: %w", nameOf(called(found, m.IDs)), err)
		}
		b = stat.Tied(b, p.Tolerance)
		rho, n := stat.SpearmanOfCommon(a, b)
		// Rounded, so that a ρ of 0.8 is 0.8 where it's compared.
		rho = math.Round(rho*1e12) / 1e12
		pairs := sameOrder(a, b)
		t.Rows = append(t.Rows, stages.Row{Keys: m.IDs,
			Numbers: numbers(rho, pairs, float64(n), float64(moved(a, b)))})
		found.Add(m.IDs, rho)
		e.Emit("agreement", nameOf(m.IDs), "", stages.Scalar(rho))
		e.Emit("pairs", nameOf(m.IDs), "", stages.Scalar(pairs))
	}
	if len(t.Rows) == 0 {
		return errors.New("no combination of the collapsed axes has both scores and a reference")
	}
	e.Set("table", t.Encode())
	return told(e, p.List, found, t.Numbers[0], claims.Words{Verb: "have", More: "a larger correlation",
		Digits: 2, Name: "Spearman's ρ"}, scores.Seeded(slices.Concat(ranked.Cells(), right.Cells())))
}

// qualities returns how good the competitors of one contest are in a case, and in that of the other contest;
// NaN where one isn't ranked.
func qualities(c, other *scores.Contest, m, reference *scores.Case) (a, b []float64, err error) {
	means, err := m.Means()
	if err != nil {
		return nil, nil, fmt.Errorf("port scores: %w", err)
	}
	right, err := reference.Means()
	if err != nil {
		return nil, nil, fmt.Errorf("port reference: %w", err)
	}
	b = make([]float64, len(c.Competitors))
	for i, id := range c.Competitors {
		b[i] = math.NaN()
		if k := slices.Index(other.Competitors, id); k >= 0 {
			b[i] = right.Quality[k]
		}
	}
	return means.Quality, b, nil
}

// sameOrder returns the share of the pairs with unequal b that a orders like b, where equal a count half; NaN
// without such pairs. A pair with a NaN doesn't count.
func sameOrder(a, b []float64) float64 {
	same, pairs := 0.0, 0
	for i := range b {
		for k := range i {
			if !(b[i] < b[k] || b[i] > b[k]) || math.IsNaN(a[i]) || math.IsNaN(a[k]) {
				continue
			}
			pairs++
			switch {
			case a[i] == a[k]:
				same += 0.5
			case (a[i] > a[k]) == (b[i] > b[k]):
				same++
			}
		}
	}
	return same / float64(pairs)
}
