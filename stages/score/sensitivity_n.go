package score

import (
	"fmt"
	"math"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/stat"
)

// SensitivityNParams are the parameters of [SensitivityN].
type SensitivityNParams struct{ SubsetParams }

// SensitivityN is that of Ancona, Ceolini, Öztireli and Gross, "Towards better understanding of
// gradient-based attribution methods for deep neural networks", ICLR 2018, section 4.
var SensitivityN = subsetMetric(stages.Def[SensitivityNParams]{
	Name: "score/sensitivity-n",
	Doc: `correlation of relevance and drop at each size of subsets

The correlation of score/faithfulness-correlation at each of several sizes n, over 100
subsets of each, as a curve and its mean. Sizes are on a logarithmic grid up to 0.8 of the
pixels in the paper, which sets them to zero:

  subset:
    uses: perturb/subset
    in: {model: model, images: images}
    with: {samples: 100, shares: [0.001, 0.004, 0.015, 0.055, 0.21, 0.8], substrate: zero}
  score: {uses: score/sensitivity-n, in: {maps: maps, subsets: subset}}

Ancona et al., "Towards Better Understanding of Gradient-Based Attribution Methods for Deep
Neural Networks", ICLR 2018, section 4.`,
	Definition: ofSubsets(stages.Definition{
		Formula: "the mean over sizes n of Pearson's r over subsets S, |S| = n, of Σ a over S and " +
			"f(x) − f(x_S)",
		Operator:    "the substrate of perturb/subset in the place of a subset, in the paper zero",
		Aggregation: "a correlation over the subsets of each size, and their mean over sizes",
		Undefined: "for a map that isn't finite, and where at one size all sums over subsets are equal, or " +
			"all drops",
	}),
	Version: 1,
	Outputs: []stages.Port{
		{Name: "scores", Type: stages.Scores, Doc: "the mean correlation, in [−1,1]"},
		{Name: "curves", Type: stages.Curves,
			Doc: "the correlation at each size, with the one response correlation"},
	},
	Variants: []stages.Variant{{
		Item: "correlation", Default: "over the subsets of an image, of sums and drops of the same subset",
		Differs: "Quantus correlates over the images of a batch, of the values of a step and the drop of " +
			"all steps so far, which is removed in the order of each map; it keeps the first batch alone",
		Golden: "subsets",
	}},
	Defaults: SensitivityNParams{SubsetParams{Response: "logit", Values: metric.Signed}},
	Facts: func(_ SensitivityNParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := taking("fixed")(in); err != nil {
			return nil, err
		}
		shares := in["subsets"]["shares"]
		if shares == "" {
			return nil, fmt.Errorf("images have different numbers of segments: give perturb/subset shares, " +
				"so that all curves have the same points")
		}
		return map[string]stages.Facts{"scores": correlated().Facts(nil), "curves": {
			"responses": "correlation", "direction": string(stages.Higher), "shares": shares}}, nil
	},
}, func(_ SensitivityNParams, e *stages.Env, i int, s replaced, values []float64) error {
	sizes := strings.Count(e.Facts("subsets")["shares"], ",") + 1
	curve := make([]float64, sizes)
	relevance, drops := s.relevance(values), s.drops()
	each := len(drops) / sizes
	if each*sizes != len(drops) {
		return fmt.Errorf("%d subsets aren't the same number of each of %d sizes", len(drops), sizes)
	}
	for k := range curve {
		curve[k] = math.NaN()
		if metric.Defined(values) {
			curve[k] = stat.Pearson(relevance[k*each:(k+1)*each], drops[k*each:(k+1)*each])
		}
	}
	e.Put("scores", i, stages.Scalar(metric.Average(curve)))
	e.Put("curves", i, stages.NewTensor(curve, 1, sizes).Encode())
	return nil
})
