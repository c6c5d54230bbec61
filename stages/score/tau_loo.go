package score

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/stat"
)

// TauLOOParams are the parameters of [TauLOO].
type TauLOOParams struct{ SubsetParams }

// TauLOO is the correlation with leaving one token out of Jain and Wallace, "Attention is not Explanation",
// NAACL 2019, section 4.1, as Attanasio et al. compute it, "ferret", EACL 2023.
var TauLOO = subsetCorrelation(stages.Def[TauLOOParams]{
	Name: "score/tau-loo",
	Doc: `rank correlation of relevance and the drops of single tokens

Kendall's τ-b. Each token of a text, special ones left out, is removed or replaced alone:

  subset:
    uses: perturb/subset
    in: {model: model, texts: texts}
    with: {draw: single, substrate: removal}
  score: {uses: score/tau-loo, in: {maps: maps, subsets: subset}}

Of images the units are pixels, regions or segments. Jain and Wallace, "Attention is not
Explanation", NAACL 2019, correlate attention with how far the whole output moves;
Attanasio et al., "ferret", EACL 2023, relevance with the drop of the class's probability.`,
	Definition: ofSubsets(stages.Definition{
		Formula:  "Kendall's τ-b over units u of Σ a over u and f(x) − f(x_u)",
		Unit:     "a token that isn't special; of images a pixel, a region or a segment",
		Operator: "the substrate of perturb/subset in the place of a unit, or its removal",
		Response: "the explained class's probability, or its logit",
		Aggregation: "a rank correlation over the units of a text, concordant minus discordant pairs over " +
			"the geometric mean of the pairs that either side doesn't tie",
		Randomness: "none, except for random substrates: by the experiment's seed and the image",
		Undefined: "for a map that isn't finite, where all units have the same relevance or drop, or of " +
			"fewer than two units",
	}),
	Version: 1,
	Variants: []stages.Variant{{
		Item: "the drop", Default: "of the explained class, signed, as ferret has it",
		Differs: "Jain and Wallace take half the sum of the magnitudes by which all classes' " +
			"probabilities change",
	}},
	Defaults: TauLOOParams{SubsetParams{Response: "probability", Values: metric.Signed}},
}, stat.Kendall, taking("single"))
