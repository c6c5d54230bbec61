package score

import (
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/stat"
)

// MonotonicityCorrelationParams are the parameters of [MonotonicityCorrelation].
type MonotonicityCorrelationParams struct{ SubsetParams }

// MonotonicityCorrelation is the monotonicity of Nguyen and Rodríguez Martínez, "On quantitative aspects of
// model interpretability", 2020, section 3.
var MonotonicityCorrelation = subsetMetric(stages.Def[MonotonicityCorrelationParams]{
	Name: "score/monotonicity-correlation",
	Doc: `rank correlation of relevance and the response to noise

Each unit is replaced by noise many times, and the mean squared change of the response is
compared with the unit's relevance. In Quantus 100 draws of uniform noise:

  subset:
    uses: perturb/subset
    in: {model: model, images: images}
    with: {draw: single, unit: region, region: 16, substrate: random, repeats: 100}
  score: {uses: score/monotonicity-correlation, in: {maps: maps, subsets: subset}}

The change is divided by the response, which doesn't change ranks. Nguyen and Rodríguez
Martínez, "On Quantitative Aspects of Model Interpretability", 2020.`,
	Definition: ofSubsets(stages.Definition{
		Formula: "Spearman's ρ over units u of Σ |a| over u and the mean over draws x_u of " +
			"(f(x_u) − f(x))² / f(x)²",
		Operator:    "noise of perturb/subset in the place of a unit, uniform with substrate: random",
		Aggregation: "a rank correlation over the units of an image, with shared ranks for ties",
		Randomness:  "the noise, by the experiment's seed and the image, the same for all maps",
		Undefined: "for a map that isn't finite, where all units have the same relevance or change, or of " +
			"one unit",
	}),
	Version: 1,
	Outputs: []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the correlation, in [−1,1]"}},
	Variants: []stages.Variant{{
		Item: "noise", Default: "a number for each value of each channel",
		Differs: "Quantus draws one number for an image and a step, which all replaced values get, on " +
			"units in the order of the map",
		Golden: "subsets",
	}},
	Defaults: MonotonicityCorrelationParams{SubsetParams{Response: "logit", Values: metric.Magnitude}},
	Facts: func(_ MonotonicityCorrelationParams,
		in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := taking("single")(in); err != nil {
			return nil, err
		}
		return map[string]stages.Facts{"scores": correlated().Facts(nil)}, nil
	},
}, func(_ MonotonicityCorrelationParams, e *stages.Env, i int, s replaced, values []float64) error {
	x := math.NaN()
	if metric.Defined(values) {
		x = stat.Spearman(s.relevance(values), s.changes())
	}
	e.Put("scores", i, stages.Scalar(x))
	return nil
})

// least is the magnitude of a response below which changes aren't divided by it.
const least = 1e-5

// changes returns the mean squared change of the response to each subset, relative to the response to the
// image.
func (s replaced) changes() []float64 {
	of := 1.0
	if math.Abs(s.image) >= least {
		of = s.image * s.image
	}
	return s.over(func(response float64) float64 {
		change := response - s.image
		return change * change / of
	})
}
