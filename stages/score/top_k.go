package score

import (
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// TopKParams are the parameters of [TopK].
type TopKParams struct {
	RankingParams
	K     int     `yaml:"k" doc:"how many of the most relevant pixels, unless share is given" min:"1"`
	Share float64 `yaml:"share" doc:"which share of the image's pixels, rounded to a whole number of at least one; 0: k pixels" min:"0" max:"1"`
}

// TopK is the top-k intersection of Theiner, Müller-Budack and Ewerth, "Interpretable Semantic Photo
// Geolocation", WACV 2022, and their concept influence.
var TopK = stages.New(stages.Def[TopKParams]{
	Name: "score/top-k",
	Doc: `share of the k most relevant pixels that is on the object

|top k ∩ object| / k. Where equal pixels compete for the last places, the mean over all
choices counts. chance is the object's share of the image, the score of a constant map.
influence is the score divided by chance, the concept influence: 1 by chance, more if
the map prefers the object, whatever its size. Only the order of pixels counts. Pixels
that the mask ignores are left out. Theiner et al., WACV 2022.`,
	Definition: located(stages.Definition{
		Formula:     "|top k ∩ object| / k; influence divides it by |object| / n",
		Reference:   "the object's mask or boxes",
		Aggregation: "where equal pixels compete for the last places, the mean over all choices",
		Undefined:   "where the object has no pixel or all, where k is all pixels or more",
	}),
	Version:  1,
	Relation: stages.Each,
	Inputs:   maskOrBoxes(),
	Outputs: []stages.Port{
		{Name: "scores", Type: stages.Scores, Doc: "the share, in [0,1]"},
		{Name: "chance", Type: stages.Scores, Doc: "its mean over maps whose pixels are in random order"},
		{Name: "influence", Type: stages.Scores, Doc: "the score divided by chance, at least 0"},
	},
	Variants: []stages.Variant{{
		Item: "equal pixels", Default: "the mean over all choices",
		Differs: "Quantus takes those that an unstable sort puts first",
	}},
	Defaults: TopKParams{RankingParams: RankingParams{metric.Signed}, K: 1000},
	Check:    oneObject[TopKParams],
	Facts: func(TopKParams, map[string]stages.Facts) (map[string]stages.Facts, error) {
		scores := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-3,
			ItemTolerance: orderJump}
		chance := stages.Measure{Unit: "share", Direction: stages.None, High: 1, Tolerance: 1e-4,
			ItemTolerance: kinkJump}
		return map[string]stages.Facts{"scores": scores.Facts(nil), "chance": chance.Facts(nil),
			"influence": timesChance().Facts(nil)}, nil
	},
	Run: eachObject(func(p TopKParams) string { return p.Values }, nil,
		func(p TopKParams, v []float64, mask []uint8) []float64 {
			k := p.K
			if p.Share > 0 {
				k = max(int(math.RoundToEven(p.Share*float64(len(v)))), 1)
			}
			if k >= len(v) || !metric.Relevance(v) {
				return []float64{math.NaN(), math.NaN(), math.NaN()}
			}
			x, chance := metric.TopOf(v, mask, k).Hits()/float64(k), share(mask)
			return []float64{x, chance, x / chance}
		}),
})

// timesChance is the measure of a share on the object divided by the object's share of the image.
func timesChance() stages.Measure {
	return stages.Measure{Unit: "times chance", Direction: stages.Higher, High: math.Inf(1), Tolerance: 1e-2,
		ItemTolerance: 10 * orderJump}
}
