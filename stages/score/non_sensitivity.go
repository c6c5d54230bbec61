package score

import (
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// NonSensitivityParams are the parameters of [NonSensitivity].
type NonSensitivityParams struct {
	SubsetParams
	Epsilon float64 `yaml:"epsilon" doc:"below which the share of the largest relevance, and the change of the response, are none" min:"0" max:"1"`
}

// NonSensitivity is that of Nguyen and Rodríguez Martínez, "On quantitative aspects of model
// interpretability", 2020, section 3.
var NonSensitivity = subsetMetric(stages.Def[NonSensitivityParams]{
	Name: "score/non-sensitivity",
	Doc: `units that matter to the map or the model, but not to both

Each unit is replaced alone; counted are those without relevance that change the response,
and those with relevance that don't:

  subset:
    uses: perturb/subset
    in: {model: model, images: images}
    with: {draw: single, unit: region, region: 16}
  score: {uses: score/non-sensitivity, in: {maps: maps, subsets: subset}}

Nguyen and Rodríguez Martínez, "On Quantitative Aspects of Model Interpretability", 2020.`,
	Definition: ofSubsets(stages.Definition{
		Formula: "the number of units u for which one of |a_u| < ε·max |a_u| and |f(x) − f(x_u)| < ε " +
			"holds, and not the other; a_u = Σ |a| over u; ε = 1e-5; of a map of zeros the " +
			"first holds for all",
		Response:    "the explained class's probability, or its logit",
		Aggregation: "a count over the units of an image, and its share of them",
		Randomness:  "none, except for random substrates: by the experiment's seed and the image",
		Undefined:   "for a map or a response that isn't finite",
	}),
	Version: 1,
	Outputs: []stages.Port{
		{Name: "share", Type: stages.Scores, Doc: "the share of the units, in [0,1]"},
		{Name: "count", Type: stages.Scores, Doc: "how many these are"},
	},
	Variants: []stages.Variant{{
		Item: "score", Default: "port share, which images of different units have in common",
		Differs: "Quantus counts: port count, of single values of channels",
		Golden:  "subsets",
	}, {
		Item: "signed maps", Default: "magnitudes, or positive parts",
		Differs: "Quantus compares a with ε, not |a|: with abs=False all negative relevance is none",
		Golden:  "subsets",
	}},
	Defaults: NonSensitivityParams{SubsetParams{Response: "probability", Values: metric.Magnitude}, 1e-5},
	Facts: func(_ NonSensitivityParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := taking("single")(in); err != nil {
			return nil, err
		}
		share := stages.Measure{Unit: "share", Direction: stages.Lower, High: 1, Tolerance: 5e-3,
			ItemTolerance: orderJump}
		count := stages.Measure{Unit: "units", Direction: stages.Lower, High: math.Inf(1), Tolerance: 0.5,
			ItemTolerance: 5}
		return map[string]stages.Facts{"share": share.Facts(nil), "count": count.Facts(nil)}, nil
	},
}, func(p NonSensitivityParams, e *stages.Env, i int, s replaced, values []float64) error {
	count, share := math.NaN(), math.NaN()
	if drops := s.drops(); metric.Defined(values) && metric.Defined(drops) {
		count = p.disagreements(s.relevance(values), drops)
		share = count / float64(len(drops))
	}
	e.Put("share", i, stages.Scalar(share))
	e.Put("count", i, stages.Scalar(count))
	return nil
})

// disagreements counts the units of which either the relevance or the drop is none.
func (p NonSensitivityParams) disagreements(relevance, drops []float64) (count float64) {
	most := 0.0
	for _, v := range relevance {
		most = math.Max(most, math.Abs(v))
	}
	for k, v := range relevance {
		if (most == 0 || math.Abs(v)/most < p.Epsilon) != (math.Abs(drops[k]) < p.Epsilon) {
			count++
		}
	}
	return count
}
