package fuse

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
)

// MetaRankParams are the parameters of [MetaRank].
type MetaRankParams struct {
	Params
	Resamples int `yaml:"resamples" doc:"number of resamples of the cases for the intervals of kappa and rank; 0: no intervals" min:"0" max:"1000000"`
	claims.List
}

// MetaRank fuses the rankings of many cases into one, after Duan et al., "On the Evaluation Consistency of
// Attribution-based Explanations", ECCV 2024.
var MetaRank = stages.New(stages.Def[MetaRankParams]{
	Name: "fuse/meta-rank",
	Doc: `one ranking combined from many

Every combination of the other collapsed axes is a case. In each case the methods are
compared by their mean over the images for which all that have scores there have one;
whether a large or a small mean is better is a property of the scores. A method's κ is
the mean log-odds of beating another one, the least-squares solution of the paper's
equation 6; where methods are missing in some cases, pairs count by the cases that have
both. The intervals hold 95 % of resamples of the cases: they say how much κ and rank
depend on which cases there are. A method without a defined score isn't ranked, and
neither is one that no case compares with the others. Methods with equal scores in all
cases are reported: two copies of one distort the κ of all others. Claims are about κ;
their p-value is that of the sign test of the cases, which share images and are taken as
independent.
Duan et al., ECCV 2024.
` + scores.ExactDoc + `
Each resample of the cases then has means of a resample of the images computed in float32,
and the answer tells in how many of these the winner and the whole order stay.`,
	Version:  8,
	Relation: stages.Whole,
	Ordered:  true,
	Seeded:   true,
	Inputs: append([]stages.Port{{Name: "scores", Type: stages.Scores, Averages: true,
		Doc: "scores of all methods in all cases"}}, scores.ExactPorts("scores", "rank")...),
	Outputs: []stages.Port{
		{Name: "ranking", Type: stages.TableType,
			Doc: "the methods, best first: κ and rank with intervals, pairwise comparisons won, cases, " +
				"images"},
		{Name: "pairs", Type: stages.TableType,
			Doc: "for every pair of methods, how often one beats the other"},
		{Name: "cases", Type: stages.TableType, Doc: "mean and rank of every method in every case"},
		claims.Port,
		claims.AnswerPort,
	},
	Defaults: MetaRankParams{Params: defaults(), Resamples: 1000},
	Variants: []stages.Variant{{
		Item:    "ties, and methods that win always",
		Default: "a tie is half a win, clip 0.001",
		Differs: "the paper leaves both open; its printed totals need a clip below about 0.01, which " +
			"smoothing: laplace can't give",
		Golden: "meta_rank",
	}},
	Facts: claims.AnswerFacts[MetaRankParams],
	Check: func(p MetaRankParams, wired func(string) bool) error { return p.CheckExactly(wired) },
	Hooks: func(MetaRankParams) stages.Hooks { return stages.Hooks{Present: present} },
	Run: func(ctx context.Context, p MetaRankParams, e *stages.Env) error {
		c, err := newContest(ctx, p.Params, e)
		if err != nil {
			return err
		}
		c.warn(e)
		r := result{Fusion: stat.Fuse(c.quality, p.smoothing())}
		r.kappa, r.rank = stat.FuseIntervalsOf(c.estimates(e.SharedRand("estimates")), p.smoothing(),
			p.Resamples, e.SharedRand("cases"))
		c.setStays(r.Rank, p.smoothing(), e.SharedRand("stays"))
		r.order = byRank(r.Fusion)
		e.Set("ranking", rankingTable(p, c, r).Encode())
		e.Set("pairs", pairsTable(p, c, r).Encode())
		e.Set("cases", casesTable(p, c).Encode())
		outcomes, err := c.claimed(p, r, e.Label)
		if err != nil {
			return err
		}
		text := answer(c, r)
		if first := outcomes.Answer(words); first != "" {
			text = first + "\n\n" + text
		}
		e.Set("claims", outcomes.Table(kappaColumn, 0).Encode())
		e.Set("answer", []byte(text))
		return nil
	},
})

// A result is the fusion of a contest.
type result struct {
	stat.Fusion
	kappa, rank []stat.Interval // by method
	order       []int           // methods, best first, ties by name
}

// won returns the number of pairwise comparisons that a method won, over all cases and opponents, and of all.
func (r result) won(method int) (won, all float64) {
	for q := range r.Wins {
		won += r.Wins[method][q]
		all += r.Wins[method][q] + r.Wins[q][method]
	}
	return won, all
}
