package score

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/stat"
)

// RankCorrelationParams are the parameters of [RankCorrelation].
type RankCorrelationParams struct{ AgreementParams }

// RankCorrelation is Spearman's rank correlation of two maps' pixels, by which Adebayo et al., "Sanity checks
// for saliency maps", NeurIPS 2018, compare maps of a trained model and of a randomised one.
var RankCorrelation = agreement(stages.Def[RankCorrelationParams]{
	Name: "score/rank-correlation",
	Doc: `agreement of the order of two maps' pixels: Spearman's ρ

1 for the same order, −1 for the opposite one, about 0 for maps that have nothing to do
with each other. Adebayo et al., "Sanity Checks for Saliency Maps", NeurIPS 2018,
compare magnitudes and signed values. Spearman 1904.`,
	Definition: stages.Definition{
		Formula: "Spearman's ρ over pixels of two maps: the correlation of their ranks, equal pixels " +
			"sharing the mean of theirs",
		Unit:        "a pixel",
		Operator:    "that of the other map's making: randomised weights, another class, a draw",
		Response:    "the method's maps",
		Reference:   "the other map",
		Aggregation: "one correlation over all pixels",
		Randomness:  "none, besides that of the maps",
		Undefined:   "where a map is constant, or has a value that isn't a number",
	},
	Variants: []stages.Variant{{
		Item: "values", Default: "values: magnitude",
		Differs: "the paper's appendix also has signed values (values: signed)",
	}},
	Defaults: RankCorrelationParams{AgreementParams{metric.Magnitude, string(stages.Lower)}},
}, func(p RankCorrelationParams) AgreementParams { return p.AgreementParams },
	func(_ RankCorrelationParams, x, y []float64, _, _ int) (float64, error) {
		return stat.Spearman(x, y), nil
	})
