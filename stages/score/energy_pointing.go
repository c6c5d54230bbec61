package score

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// EnergyPointingParams are the parameters of [EnergyPointing].
type EnergyPointingParams struct {
	LocalisationParams
}

// EnergyPointing is the share of the relevance in the object's boxes, the energy-based pointing game of Wang
// et al., "Score-CAM: Score-weighted visual explanations for convolutional neural networks", CVPR workshops
// 2020: Σ_{i∈box} L_i / Σ_i L_i.
var EnergyPointing = localisation(stages.Def[EnergyPointingParams]{
	Name: "score/energy-pointing",
	Doc: `share of the relevance in the object's boxes

Relevance inside the boxes divided by all relevance. A pixel is inside if its centre is
in one of the boxes. chance is the boxes' share of the image, the score of a constant
map. Wang et al., "Score-CAM", CVPR workshops 2020.`,
	Definition: located(stages.Definition{
		Formula:     "Σ over pixels in the boxes of a⁺ / Σ of a⁺",
		Reference:   "the object's boxes",
		Aggregation: "a quotient of sums over pixels",
	}),
	Version: 2,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "attribution maps"},
		{Name: "boxes", Type: stages.Boxes, Doc: "boxes around the object"},
	},
	Defaults: EnergyPointingParams{LocalisationParams{metric.Positive}},
}, stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-4, ItemTolerance: kinkJump},
	func(p EnergyPointingParams) string { return p.Values }, nil,
	func(_ EnergyPointingParams, v []float64, mask []uint8) (score, chance float64) {
		return metric.MassAccuracy(v, mask), share(mask)
	})
