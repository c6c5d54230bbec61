package stats

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
)

// ICRParams are the parameters of [ICR].
type ICRParams struct {
	Rate      string `yaml:"rate" axis:"scores" doc:"the axis whose ids are rated, usually method"`
	Between   string `yaml:"between" axis:"scores" doc:"the axis whose ids are compared two by two, such as metrics or baselines"`
	Reference string `yaml:"reference" doc:"the id of between that every other is compared with; default: every two"`
	Variant   string `yaml:"variant" doc:"the mean over images of their ρ (paper), or as in the code of MAS over the whole matrix, which is never negative (official), or a column and a sentence of each (both), with claims of the paper's" choices:"paper|official|both"`
	NumberedParams
	claims.List
}

// correlation names the number of [ICR], [Consistency] and [RankCorrelation] in claims.
var correlation = []string{"rho", "correlation"}

// Known rejects claims that name unknown ids.
func (p ICRParams) Known(ids map[string][]string) error {
	return p.List.Known(but(ids, p.Rate), correlation...)
}

// ICR is the internal consistency reliability of metrics, after Tomsett, Harborne, Chakraborty, Gurram and
// Preece, "Sanity Checks for Saliency Metrics", AAAI 2020.
var ICR = stages.New(stages.Def[ICRParams]{
	Name: "stats/icr",
	Doc: `internal consistency: agreement of two metrics on an order

The mean over images of Spearman's ρ between the scores that two metrics, or one metric
under two baselines, give the methods. Scores are compared by quality: of a metric whose
scores are better if smaller, the order is reversed. An image without a score of some
method by either metric is left out, and one that a metric scores equally for all methods
has no ρ. Tomsett et al., AAAI 2020.`,
	Version:  6,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs: []stages.Port{{Name: "scores", Type: stages.Scores, Averages: true,
		Doc: "scores of all methods"}},
	Outputs: []stages.Port{
		{Name: "table", Type: stages.TableType, Doc: "mean ρ, images, undefined scores"},
		claims.Port,
		claims.AnswerPort,
	},
	Defaults: ICRParams{Variant: paper},
	Variants: []stages.Variant{{
		Item: "what ρ is the mean of", Default: paper,
		Differs: "official: the code of MAS averages the correlations between all images, by one metric " +
			"and by two, each with itself included, of the methods' numbers in the order of their scores: " +
			"the squared length of their mean, which is never negative and grows where one metric's " +
			"images agree, even if the two metrics don't; both has the two side by side",
		Golden: "irr_icr",
	}},
	Facts: claims.AnswerFacts[ICRParams],
	Run: func(ctx context.Context, p ICRParams, e *stages.Env) error {
		c, err := p.contest(ctx, e, p.Rate)
		if err != nil {
			return err
		}
		between := slices.Index(c.Others, p.Between)
		if between < 0 {
			return stages.BadField("between", "the axis %q isn't collapsed, or is the one that is rated",
				p.Between)
		}
		keys := slices.Clone(c.Others)
		if p.Reference == "" {
			keys = append(keys, "against")
		}
		tested, met := claims.Results{Axes: slices.Clone(c.Others), Names: correlation, Label: e.Label},
			p.Reference == ""
		if met {
			tested.Axes = append(tested.Axes, p.Between)
		}
		f := newReliability(c, "Agreement on the order of "+c.Axis+" between "+p.Between+"s", "rho",
			keys, p.Variant, tested)
		for i, first := range c.Cases {
			met = met || first.IDs[between] == p.Reference
			for _, second := range c.Cases[i+1:] {
				a, b := first, second
				if !sameBut(between, a.IDs, b.IDs) {
					continue
				}
				ids := append(slices.Clone(a.IDs), b.IDs[between])
				if p.Reference != "" {
					if a.IDs[between] == p.Reference {
						a, b = b, a
					}
					if b.IDs[between] != p.Reference {
						continue
					}
					ids = a.IDs
				}
				r := ratingsOf(e, c, ids, [][]*scores.Cell{a.Cells, b.Cells})
				rho, n := stat.Consistency(r.images[0], r.images[1])
				if p.Variant == official {
					n = len(r.images[0])
				}
				f.add(ids, n, r.undefined, func(variant string) float64 {
					if variant == official {
						return stat.ConsistencyOfficial(r.orders(0), r.orders(1))
					}
					return rho
				})
			}
		}
		switch {
		case !met:
			return stages.BadField("reference", "the axis %s has no id %q", p.Between, p.Reference)
		case len(f.table.Rows) == 0:
			return stages.BadField("between", "the axis %s has a single id: there is nothing to compare",
				p.Between)
		}
		return f.set(e, p.List, claims.Words{Verb: "agree",
			More: "more on the order of " + c.Axis + "s", Digits: 3}, map[string]string{
			paper:    "the mean of Spearman's ρ",
			official: "the ρ of the authors' code, a squared length that is never negative",
		})
	},
})

// sameBut reports whether two lists of ids differ at one place alone.
func sameBut(place int, a, b []string) bool {
	for k := range a {
		if (a[k] == b[k]) == (k == place) {
			return false
		}
	}
	return true
}
