package score

import (
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// EffectiveHeatRatioParams are the parameters of [EffectiveHeatRatio].
type EffectiveHeatRatioParams struct {
	LocalisationParams
	Base       float64 `yaml:"base" doc:"the share of the largest value below which pixels count in no threshold; the authors' code has 0.1" min:"0" max:"0.99"`
	Thresholds int     `yaml:"thresholds" doc:"number of quantiles from 0 to 1" min:"2" max:"1001"`
	By         string  `yaml:"by" doc:"what relevance on the object is divided by: the number of pixels that reach the threshold, or their relevance" choices:"pixels|relevance"`
}

// EffectiveHeatRatio is the effective heat ratio of Zhang et al., "Fine-Grained Neural Network Explanation by
// Identifying Input Features with Predictive Information", NeurIPS 2021.
var EffectiveHeatRatio = localisation(stages.Def[EffectiveHeatRatioParams]{
	Name: "score/effective-heat-ratio",
	Doc: `relevance on the object above rising thresholds: EHR

At each threshold the relevance, divided by the map's largest value, of the object's
pixels that reach it is divided by the number of all pixels that do; the score is the
area under these ratios over the thresholds, quantiles from 0 to 1 of the pixels that
reach base. 1 if the most relevant pixels are all on the object and equal. chance is the
mean over maps of the same values in random order: it differs from map to map, as peaked
maps have less relevance a pixel. With by: relevance it is the object's share of the
image. Pixels that the mask ignores are left out. Zhang et al., NeurIPS 2021.`,
	Definition: located(stages.Definition{
		Formula: "area over q in [0,1] of Σ_{a≥t, on the object} a / |{a ≥ t}|, with max a = 1 and t the " +
			"q-quantile of the values ≥ base, at most 0.99; by: relevance divides by Σ_{a≥t} a",
		Reference:   "the object's mask or boxes",
		Aggregation: "the trapezoidal rule over the thresholds",
	}),
	Version: 1,
	Inputs:  maskOrBoxes(),
	Variants: []stages.Variant{{
		Item: "divisor", Default: "by: pixels",
		Differs: "by: relevance is the mean over thresholds of the share of relevance on the object, as " +
			"summaries of the metric have it; the authors divide by pixels",
	}, {
		Item: "scale", Default: "the map's largest value is 1",
		Differs: "the authors' code takes maps in [0,1], and divides by 255 those that exceed 1",
	}},
	Defaults: EffectiveHeatRatioParams{LocalisationParams{metric.Positive}, 0.1, 11, "pixels"},
	Check:    oneObject[EffectiveHeatRatioParams],
}, stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-3,
	ItemTolerance: orderJump},
	func(p EffectiveHeatRatioParams) string { return p.Values }, nil,
	func(p EffectiveHeatRatioParams, v []float64, mask []uint8) (score, chance float64) {
		if !metric.Relevance(v) {
			return math.NaN(), math.NaN()
		}
		return metric.HeatRatio(v, mask, p.Base, p.Thresholds, p.By == "relevance")
	})
