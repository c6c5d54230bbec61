package score

import (
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
)

// SensitivityParams are the parameters of [Sensitivity].
type SensitivityParams struct {
	DrawParams
	Relative bool `yaml:"relative" doc:"divide by the norm of the original's map"`
}

// Sensitivity measures how much maps change under small changes of the image: SENS_MAX, definition 3 of Yeh
// et al., "On the (in)fidelity and sensitivity of explanations", NeurIPS 2019, and its mean in place of the
// maximum, as Bhatt, Weller and Moura have it, "Evaluating and aggregating feature-based model explanations",
// IJCAI 2020.
var Sensitivity = stages.New(stages.Def[SensitivityParams]{
	Name: "score/sensitivity",
	Doc: `change of maps with the image: max- and average sensitivity

The largest and the mean change of the map, in shares of its norm, over the draws that
over collapses; the measures name their number. The channels of a map are summed.
perturb/noise makes the draws, and their maps explain the original's class. 0 for a
constant map. Yeh et al. 2019, definition 3, who don't divide (relative: false); Bhatt
et al. 2020 have the mean.`,
	Definition: stages.Definition{
		Formula: "max and mean over draws x′ of ‖a(x′) − a(x)‖₂ / ‖a(x)‖₂; relative: false doesn't " +
			"divide",
		Unit: "an image",
		Operator: "noise on every value, of perturb/noise: its distribution and scale belong to the " +
			"score",
		Response:    "the method's map, of the original image's class",
		Reference:   "the map of the image",
		Aggregation: "the maximum over draws, and their mean",
		Randomness:  "the draws, by the experiment's seed, the image and the draw's name",
		Undefined: "without draws, for a map of zeros unless relative is false (variant: official " +
			"divides by 1), and for a map with a value that isn't finite",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "maps of the original images"},
		{Name: "draws", Type: stages.Maps, Doc: "maps of the draws", Over: true},
	},
	Outputs: []stages.Port{
		{Name: "max", Type: stages.Scores, Doc: "the largest change, at least 0"},
		{Name: "average", Type: stages.Scores, Doc: "the mean change, at least 0"},
	},
	Variants: []stages.Variant{{
		Item: "division", Default: "relative: true",
		Differs: "captum and Quantus divide by the norm of the original's map, the paper doesn't " +
			"(relative: false)",
	}, {
		Item: "a map of zeros", Default: "variant: paper",
		Differs: "official divides by 1 where the norm is 0, as captum does",
	}, {
		Item: "draws", Default: "as many as the axis has",
		Differs: "captum draws 10 within ±0.02 of the model's input, Quantus 200 within ±0.2",
	}},
	Defaults: SensitivityParams{DrawParams{Values: "signed", Variant: paper}, true},
	Facts: func(p SensitivityParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		out := map[string]stages.Facts{}
		for port, of := range map[string]string{"max": "max", "average": "mean"} {
			m := stages.Measure{Direction: stages.Lower, High: math.Inf(1), Tolerance: 5e-3,
				ItemTolerance: 5e-2, Variant: p.drawsVariant(of, in)}
			out[port] = m.Facts(nil)
		}
		return out, nil
	},
	Run: func(ctx context.Context, p SensitivityParams, e *stages.Env) error {
		for i := range e.Len() {
			most, mean, err := p.changes(ctx, e, i)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("max", i, stages.Scalar(most))
			e.Put("average", i, stages.Scalar(mean))
			e.Done(1)
		}
		return nil
	},
})

// changes returns the largest and the mean change of item i's map.
func (p SensitivityParams) changes(ctx context.Context, e *stages.Env, i int) (
	most, mean float64, err error,
) {
	a, err := p.values(e.In("maps", i))
	if err != nil {
		return 0, 0, err
	}
	norm := 1.0
	if p.Relative {
		norm = euclidean(a, nil)
		if norm == 0 && p.Variant == official {
			norm = 1
		}
	}
	sum, n := 0.0, 0
	for m, err := range e.All(i, "draws") {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, 0, err
		}
		b, err := p.drawOf(m[0].Data, a)
		if err != nil {
			return 0, 0, err
		}
		change := euclidean(b, a)
		most, sum, n = math.Max(most, change), sum+change, n+1
	}
	if n == 0 || norm == 0 {
		return math.NaN(), math.NaN(), nil
	}
	return most / norm, sum / float64(n) / norm, nil
}
