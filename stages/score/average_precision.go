package score

import (
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// AveragePrecisionParams are the parameters of [AveragePrecision].
type AveragePrecisionParams struct{ RankingParams }

// AveragePrecision is the area under the steps of the precision-recall curve of a map as a detector of the
// object's pixels: Davis and Goadrich, "The Relationship Between Precision-Recall and ROC Curves", ICML 2006,
// explain why these points aren't joined by straight lines.
var AveragePrecision = localisation(stages.Def[AveragePrecisionParams]{
	Name: "score/average-precision",
	Doc: `average precision of a map that detects the object

Σ (R_k − R_{k−1})·P_k over the thresholds k from the largest value to the smallest: P_k
is the share of the pixels that reach it which are on the object, R_k the share of the
object's pixels that reach it. Equal pixels reach a threshold together. Only the order
of pixels counts. chance is the mean over maps of the same values in random order: for a
constant map, which scores it, the object's share of the image, otherwise slightly more.
Pixels that the mask ignores are left out. Davis and Goadrich 2006.`,
	Definition: located(stages.Definition{
		Formula: "Σ (R_k − R_{k−1})·P_k over the distinct values from the largest to the smallest, of the " +
			"precision P_k and the recall R_k of the pixels that reach value k",
		Reference:   "the object's mask or boxes",
		Aggregation: "one number",
	}),
	Version: 1,
	Inputs:  maskOrBoxes(),
	Variants: []stages.Variant{{
		Item: "the area", Default: "by steps, as scikit-learn's average_precision_score",
		Differs: "ferret joins the points by straight lines, which precision-recall curves don't follow: " +
			"it overestimates",
	}},
	Defaults: AveragePrecisionParams{RankingParams{metric.Signed}},
	Check:    oneObject[AveragePrecisionParams],
}, stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-3,
	ItemTolerance: orderJump},
	func(p AveragePrecisionParams) string { return p.Values }, nil,
	func(_ AveragePrecisionParams, v []float64, mask []uint8) (score, chance float64) {
		if !metric.Relevance(v) {
			return math.NaN(), math.NaN()
		}
		return metric.AveragePrecision(v, mask)
	})
