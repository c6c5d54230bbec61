package score

import (
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// IoUParams are the parameters of [IoU].
type IoUParams struct {
	LocalisationParams
	Threshold string  `yaml:"threshold" doc:"which pixels of a map count as the object: area, as many of the most relevant ones as it has; quantile, the most relevant share 1 − quantile of the image; mean, those that reach the map's mean; top, a number of those that have relevance" choices:"area|quantile|mean|top"`
	Quantile  float64 `yaml:"quantile" doc:"with threshold: quantile, the share of the image's pixels that is less relevant" min:"0" max:"1"`
	Top       int     `yaml:"top" key:"added" doc:"with threshold: top, the number of pixels, or of tokens" min:"1" max:"1000000"`
}

// IoU is the intersection of the object and a map's most relevant pixels, divided by their union: the Jaccard
// index of the segmentation that a thresholded map is.
var IoU = localisation(stages.Def[IoUParams]{
	Name: "score/iou",
	Doc: `overlap of the most relevant pixels and the object

Intersection over union of the object and the pixels that threshold chooses, at least
one. Where equal pixels compete for the last places, the mean over all choices counts.
chance is the mean over equally many pixels drawn at random; with thresholds area and
quantile it's the score of a constant map. Pixels that the mask ignores are left out.`,
	Definition: located(stages.Definition{
		Formula: "|T ∩ M| / |T ∪ M|, with the object M and the most relevant pixels T: as many as M " +
			"has, a share of the image, those that reach the mean, or a number of those with relevance",
		Reference: "the object's mask or boxes",
		Aggregation: "a quotient of counts; where equal pixels compete for the last places, its mean over " +
			"all choices",
	}),
	Version:  2,
	Inputs:   maskOrBoxes(),
	Defaults: IoUParams{LocalisationParams{metric.Positive}, "area", 0.9, 5},
	Check:    oneObject[IoUParams],
}, stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-3,
	ItemTolerance: orderJump},
	func(p IoUParams) string { return p.Values }, nil,
	func(p IoUParams, v []float64, mask []uint8) (score, chance float64) {
		area := metric.MaskArea(mask)
		if area == 0 || !metric.Relevance(v) {
			return math.NaN(), math.NaN()
		}
		top := p.top(v, mask, area)
		n := top.Sure + top.Drawn
		return top.IoU(area), metric.Anywhere(n, len(v), area).IoU(area)
	})

// top returns the pixels that the threshold chooses.
func (p IoUParams) top(v []float64, mask []uint8, area int) metric.Top {
	switch p.Threshold {
	case "quantile":
		// Rounding to even puts a half pixel on the same side everywhere.
		n := int(math.RoundToEven((1 - p.Quantile) * float64(len(v))))
		return metric.TopOf(v, mask, max(n, 1))
	case "top":
		return metric.TopOf(v, mask, min(p.Top, relevant(v)))
	case "mean":
		sum := 0.0
		for _, x := range v {
			sum += x
		}
		// The mean of equal values may round to more than each of them.
		return metric.AtLeast(v, mask, min(sum/float64(len(v)), slices.Max(v)))
	}
	return metric.TopOf(v, mask, area)
}
