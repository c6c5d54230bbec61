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
	Version:  1,
	Defaults: AblationParams{Params: regionDefaults(), Order: "morf"},
})

func regionDefaults() Params {
	p := defaults("random")
	p.Unit, p.Values, p.Limit = "region", "signed", 100
	return p
}
