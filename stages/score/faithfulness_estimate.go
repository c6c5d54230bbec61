package score

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/stat"
)

// FaithfulnessEstimateParams are the parameters of [FaithfulnessEstimate].
type FaithfulnessEstimateParams struct{ SubsetParams }

// FaithfulnessEstimate is the faithfulness of Alvarez-Melis and Jaakkola, "Towards robust interpretability
// with self-explaining neural networks", NeurIPS 2018, section 5.2.
var FaithfulnessEstimate = subsetCorrelation(stages.Def[FaithfulnessEstimateParams]{
	Name: "score/faithfulness-estimate",
	Doc: `correlation of units' relevance and single drops

Each unit is replaced alone; pixels cost a forward pass each, so take regions or segments:

  subset:
    uses: perturb/subset
    in: {model: model, images: images}
    with: {draw: single, unit: region, region: 16}
  score: {uses: score/faithfulness-estimate, in: {maps: maps, subsets: subset}}

Alvarez-Melis and Jaakkola, "Towards Robust Interpretability with Self-Explaining Neural
Networks", NeurIPS 2018, section 5.2.`,
	Definition: ofSubsets(stages.Definition{
		Formula:     "Pearson's r over units u of Σ a over u and f(x) − f(x_u)",
		Aggregation: "a correlation over the units of an image",
		Randomness:  "none, except for random substrates: by the experiment's seed and the image",
		Undefined: "for a map that isn't finite, where all units have the same relevance or drop, or of " +
			"one unit",
	}),
	Version: 1,
	Variants: []stages.Variant{{
		Item: "units", Default: "the same for all maps",
		Differs: "Quantus groups single values of channels in the order of the map (features_in_step), so " +
			"that each map is judged on units of its own",
		Golden: "subsets",
	}},
	Defaults: FaithfulnessEstimateParams{SubsetParams{Response: "logit", Values: metric.Signed}},
}, stat.Pearson, taking("single"))
