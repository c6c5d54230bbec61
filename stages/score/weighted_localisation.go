package score

import (
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// WeightedLocalisationParams are the parameters of [WeightedLocalisation].
type WeightedLocalisationParams struct{ LocalisationParams }

// WeightedLocalisation is the weighted inside-total relevance ratio μ_w of Kohlbrenner et al., "Towards Best
// Practice in Explaining Neural Network Decisions with LRP", IJCNN 2020.
var WeightedLocalisation = stages.New(stages.Def[WeightedLocalisationParams]{
	Name: "score/weighted-localisation",
	Doc: `share of the relevance on the object, by the object's size

The relevance on the object divided by all relevance, times the number of the image's
pixels divided by that of the object's: how many times as much a pixel of the object has
as a mean one. 1 for a constant map, and the mean over maps whose pixels are in random
order; at most the port most, where all of it is on the object. Pixels that the mask
ignores are left out. Kohlbrenner et al., IJCNN 2020, who call it μ_w.`,
	Definition: located(stages.Definition{
		Formula:     "Σ_{i∈object} aᵢ / Σ a · n / |object|",
		Reference:   "the object's mask or boxes, and its size",
		Aggregation: "one number",
	}),
	Version:  1,
	Relation: stages.Each,
	Inputs:   maskOrBoxes(),
	Outputs: []stages.Port{
		{Name: "scores", Type: stages.Scores, Doc: "the ratio, at least 0"},
		{Name: "most", Type: stages.Scores,
			Doc: "the largest ratio there can be: the image's pixels by the object's"},
	},
	Variants: []stages.Variant{{
		Item: "the weight", Default: "image by object",
		Differs: "Quantus' AttributionLocalisation with weighted=True multiplies by object by image, and " +
			"takes for the image's size that of the batch's images from the third on, together: it rewards " +
			"large objects, depends on the batch, and divides by 0 with two images",
	}},
	Defaults: WeightedLocalisationParams{LocalisationParams{metric.Positive}},
	Check:    oneObject[WeightedLocalisationParams],
	Facts: func(WeightedLocalisationParams, map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := timesChance() // not a Measure's Chance: a constant map that has it is no net that guesses
		most := m
		most.Direction = stages.None
		return map[string]stages.Facts{"scores": m.Facts(nil), "most": most.Facts(nil)}, nil
	},
	Run: eachObject(func(p WeightedLocalisationParams) string { return p.Values }, nil,
		func(_ WeightedLocalisationParams, v []float64, mask []uint8) []float64 {
			if !metric.Relevance(v) {
				return []float64{math.NaN(), math.NaN()}
			}
			return []float64{metric.MassAccuracy(v, mask) / share(mask), 1 / share(mask)}
		}),
})
