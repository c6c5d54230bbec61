package score

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// RankAccuracyParams are the parameters of [RankAccuracy].
type RankAccuracyParams struct {
	LocalisationParams
}

// RankAccuracy is the share of the most relevant pixels on the object, the relevance rank accuracy of Arras,
// Osman and Samek, "CLEVR-XAI: A benchmark dataset for the ground truth evaluation of neural network
// explanations", Information Fusion 2022.
var RankAccuracy = localisation(stages.Def[RankAccuracyParams]{
	Name: "score/rank-accuracy",
	Doc: `share of the most relevant pixels on the object

Of the K most relevant pixels, where K is the object's number of pixels, the share on
the object: |top K ∩ object| / K. Where equal pixels compete for the last places, the
mean over all choices counts. chance is the object's share of the image, which is that
of mass accuracy too, and the score of a constant map. Pixels that the mask ignores are
left out. Arras et al., Information Fusion 2022.`,
	Definition: located(stages.Definition{
		Formula:   "|T ∩ M| / K, with the object M of K pixels and the K most relevant pixels T",
		Reference: "the object's mask or boxes",
		Aggregation: "a quotient of counts; where equal pixels compete for the last places, its mean over " +
			"all choices",
	}),
	Version:  2,
	Inputs:   maskOrBoxes(),
	Defaults: RankAccuracyParams{LocalisationParams{metric.Positive}},
	Check:    oneObject[RankAccuracyParams],
}, stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-3,
	ItemTolerance: orderJump},
	func(p RankAccuracyParams) string { return p.Values }, nil,
	func(_ RankAccuracyParams, v []float64, mask []uint8) (score, chance float64) {
		return metric.RankAccuracy(v, mask), share(mask)
	})
