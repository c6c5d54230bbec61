package score

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/stat"
)

// MuFidelityParams are the parameters of [MuFidelity].
type MuFidelityParams struct{ SubsetParams }

// MuFidelity is the faithfulness of Bhatt, Weller and Moura, "Evaluating and aggregating feature-based model
// explanations", IJCAI 2020, as xplique computes it: by ranks, over cells of a grid of which each is replaced
// with the same probability.
var MuFidelity = subsetCorrelation(stages.Def[MuFidelityParams]{
	Name: "score/mu-fidelity",
	Doc: `rank correlation of random subsets' relevance and drops

As score/faithfulness-correlation, but by ranks, and of subsets in which each cell of a
grid is with the same probability. xplique has a grid of 9×9, a probability of 0.2, 200
samples and zero after normalisation; for images of 224 pixels:

  subset:
    uses: perturb/subset
    in: {model: model, images: images}
    with: {draw: bernoulli, p: 0.2, samples: 200, unit: region, region: 25, substrate: zero}
  score: {uses: score/mu-fidelity, in: {maps: maps, subsets: subset}}

Bhatt et al., "Evaluating and Aggregating Feature-Based Model Explanations", IJCAI 2020,
by ranks as Spearman 1904.`,
	Definition: ofSubsets(stages.Definition{
		Formula: "Spearman's ρ over subsets S of Σ a over S and f(x) − f(x_S), each unit in S with " +
			"probability p",
		Unit: "in xplique a cell of a grid of 9×9, as a region of perturb/subset",
		Operator: "the substrate of perturb/subset in the place of a subset, in xplique zero after " +
			"normalisation",
		Aggregation: "a rank correlation over the subsets of an image, with shared ranks for ties",
		Undefined: "for a map that isn't finite, and where all sums over subsets are equal, as of a map of " +
			"zeros, or all drops",
	}),
	Version: 1,
	Variants: []stages.Variant{{
		Item: "undefined", Default: "NaN, in no mean",
		Differs: "xplique has 0 where either side is constant",
	}},
	Defaults: MuFidelityParams{SubsetParams{Response: "logit", Values: metric.Signed}},
}, stat.Spearman, taking("bernoulli", "fixed"))
