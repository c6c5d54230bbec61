package perturb

import "github.com/runexp/runexp/stages"

// Region is the region perturbation of Samek et al., "Evaluating the Visualization of What a Deep Neural
// Network Has Learned", IEEE TNNLS 2017, section III.
var Region = blending(stages.Def[AblationParams]{
	Name: "perturb/region",
	Doc: `the model's response while regions are removed

Squares of 9×9 pixels are replaced by uniform noise, one after the other in the order
of their summed relevance, 100 of them. perturb/ablation with other defaults. Samek et
al., IEEE TNNLS 2017, section III; the curve's area over the perturbation is score/aopc's.`,
	Definition: ofBlends(stages.Definition{
		Formula:   "f(xₖ), k = 0 … L, with the k regions of the largest summed relevance replaced",
		Unit:      "a square region of 9×9 pixels, or by unit a pixel or a segment",
		Operator:  "replacement by the substrate, by default uniform noise",
		Reference: "the image, the first point",
		Randomness: "by the experiment's seed: for the image with order: random and substrate: random, " +
			"for the map with ties: random",
		Undefined: "for a map with a value that isn't a number, and with ties: index for one whose " +
			"units are all equal; never with order: random",
	}),
	Version:  1,
	Defaults: AblationParams{Params: regionDefaults(), Order: "morf"},
})

func regionDefaults() Params {
	p := defaults("random")
	p.Unit, p.Values, p.Limit = "region", "signed", 100
	return p
}
