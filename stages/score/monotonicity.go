package score

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// MonotonicityParams are the parameters of [Monotonicity].
type MonotonicityParams struct {
	Response string `yaml:"response" doc:"what must not fall: the class's probability or logit" choices:"probability|logit"`
	Variant  string `yaml:"variant" doc:"paper: all steps count; official: all but the first, from the substrate, as in AIX360" choices:"paper|official"`
}

// Monotonicity is whether a response never falls while pixels are restored from the least relevant to the
// most: the monotonicity of Arya et al., "One Explanation Does Not Fit All: A Toolkit and Taxonomy of AI
// Explainability Techniques", 2019, and of Luss et al. before them.
var Monotonicity = stages.New(stages.Def[MonotonicityParams]{
	Name: "score/monotonicity",
	Doc: `share of steps that don't lower the response

From the image wholly replaced, pixels are restored from the least relevant to the most
relevant: the states of a curve that removes the most relevant first, read from its end.
scores is the share of steps at which the response doesn't fall, monotone is 1 if it
never does. Wire curves of perturb/ablation or perturb/deletion, with values: signed for
the order that Arya et al. 2019 have.`,
	Definition: ofCurves(stages.Definition{
		Formula:     "|{k : f_k ≥ f_{k+1}}| / L, f_k the response without the k most relevant units",
		Reference:   "the state before, with one unit fewer",
		Aggregation: "the mean over steps; monotone: whether all are kept",
	}),
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{{Name: "curves", Type: stages.Curves,
		Doc: "curves that remove the most relevant pixels first, to the last"}},
	Outputs: []stages.Port{
		{Name: "scores", Type: stages.Scores, Doc: "the share of steps, in [0,1]"},
		{Name: "monotone", Type: stages.Scores, Doc: "whether it is 1"},
	},
	Variants: []stages.Variant{{
		Item: "the first step", Default: "variant: paper",
		Differs: "AIX360 begins to compare when the first feature is restored (variant: official)",
	}, {
		Item: "what is restored", Default: "the image's pixels",
		Differs: "Quantus' Monotonicity replaces the substrate by the substrate: its image never changes, " +
			"and the score is True for every map",
	}},
	Defaults: MonotonicityParams{Response: "probability", Variant: paper},
	Facts: func(p MonotonicityParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if order := in["curves"]["order"]; order != "morf" && order != metric.Deletion.String() {
			return nil, fmt.Errorf("the input %q needs curves that remove the most relevant pixels first, "+
				"not of %q", "curves", order)
		}
		if shares := in["curves"]["shares"]; shares != "" && !strings.HasSuffix(shares, ",1") {
			return nil, fmt.Errorf("the input %q needs curves to the last pixel, and their shares are %s",
				"curves", shares)
		}
		variant := in["curves"]["variant"]
		if p.Variant == official {
			variant = official
		}
		// Where a response hardly changes, rounding decides whether it falls.
		scores := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 2e-2,
			ItemTolerance: 0.2, Variant: variant}
		monotone := scores
		monotone.ItemTolerance = 1
		return map[string]stages.Facts{"scores": scores.Facts(nil), "monotone": monotone.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p MonotonicityParams, e *stages.Env) error {
		for i := range e.Len() {
			curve, err := metric.Response(e.Facts("curves"), e.In("curves", i), responses[p.Response])
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			score, monotone := p.of(curve)
			e.Put("scores", i, stages.Scalar(score))
			e.Put("monotone", i, stages.Scalar(monotone))
			e.Done(1)
		}
		return nil
	},
})

// of returns the share of steps at which a response doesn't fall, from the curve's end to its beginning.
func (p MonotonicityParams) of(curve []float64) (score, monotone float64) {
	if p.Variant == official {
		curve = curve[:len(curve)-1]
	}
	steps := len(curve) - 1
	if steps < 1 || slices.ContainsFunc(curve, math.IsNaN) {
		return math.NaN(), math.NaN()
	}
	kept := 0
	for k := range steps {
		if curve[k] >= curve[k+1] {
			kept++
		}
	}
	if kept == steps {
		monotone = 1
	}
	return float64(kept) / float64(steps), monotone
}
