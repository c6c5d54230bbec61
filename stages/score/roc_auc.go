package score

import (
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// ROCAUCParams are the parameters of [ROCAUC].
type ROCAUCParams struct{ RankingParams }

// ROCAUC is the area under the receiver operating characteristic of a map as a detector of the object's
// pixels: Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 2006.
var ROCAUC = localisation(stages.Def[ROCAUCParams]{
	Name: "score/roc-auc",
	Doc: `area under the ROC curve of a map that detects the object

The share of the pairs of a pixel on the object and one off it in which the one on the
object is more relevant; equally relevant ones count ½: the area under the receiver
operating characteristic of the map as a detector of the object's pixels. chance is ½,
the score of a constant map. Only the order of pixels counts. Pixels that the mask
ignores are left out. Fawcett 2006.`,
	Definition: located(stages.Definition{
		Formula: "share of the pairs of a pixel on the object and one off it in which the former's value " +
			"is larger; equal ones count ½",
		Reference:   "the object's mask or boxes",
		Aggregation: "one number",
	}),
	Version: 1,
	Inputs:  maskOrBoxes(),
	Variants: []stages.Variant{{
		Item: "masks without background", Default: "undefined",
		Differs: "Quantus' AUC is undefined without object, and where there is no background scikit-learn " +
			"warns and gives NaN too",
	}},
	Defaults: ROCAUCParams{RankingParams{metric.Signed}},
	Check:    oneObject[ROCAUCParams],
}, stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-3,
	ItemTolerance: orderJump},
	func(p ROCAUCParams) string { return p.Values }, nil,
	func(_ ROCAUCParams, v []float64, mask []uint8) (score, chance float64) {
		if !metric.Relevance(v) {
			return math.NaN(), math.NaN()
		}
		return metric.ROCAUC(v, mask), 0.5
	})
