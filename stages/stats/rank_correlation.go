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
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
)

// RankCorrelationParams are the parameters of [RankCorrelation].
type RankCorrelationParams struct {
	Among     string `yaml:"among" axis:"scores" doc:"the axis to compare"`
	Reference string `yaml:"reference" doc:"the id whose scores the others' are compared with; default: the first by name"`
	claims.List
}

// Known rejects claims that name unknown ids.
func (p RankCorrelationParams) Known(ids map[string][]string) error {
	return p.List.Known(ids, correlation...)
}

// RankCorrelation shows which competitors do well on the same images: Spearman's correlation of the scores
// over images, as between Grad-CAM and smoothed integrated gradients in Rao, Böhle and Schiele, "Towards
// Better Understanding Attribution Methods", CVPR 2022, section 5.3.
var RankCorrelation = stages.New(stages.Def[RankCorrelationParams]{
	Name: "stats/rank-correlation",
	Doc: `do methods score well on the same images?

Spearman's ρ over images of the scores of every id of among and those of the reference,
in every combination of the other collapsed axes, over the images that have a score of
both. Ties share their ranks. It is undefined for fewer than two images, and where one
has the same score everywhere. Spearman 1904.`,
	Version:  4,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs: []stages.Port{{Name: "scores", Type: stages.Scores, Averages: true,
		Doc: "scores of all competitors in all cases"}},
	Outputs: []stages.Port{
		{Name: "table", Type: stages.TableType, Doc: "one row per case and competitor but the reference"},
		claims.Port,
		claims.AnswerPort,
	},
	Facts: claims.AnswerFacts[RankCorrelationParams],
	Run:   runRankCorrelation,
})

func runRankCorrelation(ctx context.Context, p RankCorrelationParams, e *stages.Env) error {
	c, err := scores.NewContest(ctx, nil, e.Label, e.Ports["scores"], "among", p.Among)
	if err != nil {
		return err
	}
	p.Reference = cmp.Or(p.Reference, c.Competitors[0])
	reference := slices.Index(c.Competitors, p.Reference)
	if reference < 0 {
		return stages.BadName("reference", p.Reference, c.Competitors, "the axis %q has no id %q", c.Axis,
			p.Reference)
	}
	t := stages.Table{
		Title: "Spearman's ρ over " + c.Items + " with the scores of " + c.Names[reference],
		Keys:  slices.Concat([]string{c.Axis}, c.Others),
		Numbers: []stages.Column{{Name: "n", Unit: c.Items},
			{Name: "ρ", Direction: stages.Higher, Tolerance: pTolerance(c.Cases), Digits: 3}},
	}
	var answers, left []string
	for _, m := range c.Cases {
		if m.Cells[reference] == nil {
			left = append(left, m.Name)
			continue
		}
		best, name := math.Inf(-1), ""
		for i, competitor := range c.Competitors {
			if i == reference || m.Cells[i] == nil {
				continue
			}
			x, y := m.Both(i, reference)
			rho := stat.Spearman(stat.Tied(x, stat.Resolution(x)), stat.Tied(y, stat.Resolution(y)))
			t.Rows = append(t.Rows, stages.Row{Keys: slices.Concat([]string{competitor}, m.IDs),
				Numbers: numbers(float64(len(x)), rho)})
			if rho > best {
				best, name = rho, c.Names[i]
			}
		}
		if name != "" {
			answers = append(answers, fmt.Sprintf("%s**%s** agrees best with %s on which %s are "+
				"scored high: ρ = %.2f.", in(&m), name, c.Names[reference], c.Items, best))
		}
	}
	if len(answers) == 0 {
		answers = append(answers,
			"No correlation is defined: it takes two "+c.Items+" with different scores.")
	}
	if len(left) > 0 {
		answers = append(answers,
			fmt.Sprintf("Without scores of %s: %s.", c.Names[reference], strings.Join(left, "; ")))
	}
	found := &claims.Results{Axes: t.Keys, Names: correlation, Label: e.Label}
	for _, row := range t.Rows {
		found.Add(row.Keys, float64(row.Numbers[1]))
	}
	e.Set("table", t.Encode())
	words := claims.Words{Verb: "have", More: "a larger correlation with " + c.Names[reference], Digits: 2}
	return toldBefore(e, p.List, found, t.Numbers[1], words, strings.Join(answers, " ")+c.Seeded()+"\n")
}
