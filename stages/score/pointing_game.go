package score

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// PointingGameParams are the parameters of [PointingGame].
type PointingGameParams struct {
	LocalisationParams
	Tolerance int `yaml:"tolerance" doc:"pixels by which the most relevant pixel may miss the object; the paper's game has 15 on images of full size" min:"0" max:"1024"`
}

// PointingGame is whether the most relevant pixel is on the object, after Zhang, Lin, Brandt, Shen and
// Sclaroff, "Top-down neural attention by excitation backprop", ECCV 2016: Hits / (Hits + Misses) is the mean
// over the images.
var PointingGame = localisation(stages.Def[PointingGameParams]{
	Name: "score/pointing-game",
	Doc: `whether the most relevant pixel is on the object

1 for a hit, otherwise 0; of several most relevant pixels, the share that hits. A pixel
hits if its centre is at most tolerance pixels from that of one of the object's. chance
is the share of the image that would hit, the score of a constant map. Pixels that the
mask ignores are left out. Zhang et al., ECCV 2016.`,
	Definition: located(stages.Definition{
		Formula: "1 if the pixel with the largest a⁺ is on the object, or at most tolerance pixels " +
			"from it, else 0",
		Reference:   "the object's mask or boxes",
		Aggregation: "one pixel; of several with the largest value, the share that hits",
		Undefined:   "where no pixel or every pixel would hit",
	}),
	Version:  2,
	Inputs:   maskOrBoxes(),
	Defaults: PointingGameParams{LocalisationParams: LocalisationParams{metric.Positive}},
	Check:    oneObject[PointingGameParams],
}, // Rounding may choose between two maxima: one image's score may jump from 0 to 1.
	stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-3, ItemTolerance: 1},
	func(p PointingGameParams) string { return p.Values },
	func(p PointingGameParams) int { return p.Tolerance },
	func(_ PointingGameParams, v []float64, mask []uint8) (score, chance float64) {
		return metric.Pointing(v, mask), share(mask)
	})
