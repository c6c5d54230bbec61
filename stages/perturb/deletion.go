package perturb

import "github.com/runexp/runexp/stages"

// DeletionParams are the parameters of [Deletion].
type DeletionParams struct{ Params }

// Deletion is RISE's deletion metric.
var Deletion = blending(stages.Def[DeletionParams]{
	Name: "perturb/deletion",
	Doc: `the model's response while relevant pixels are deleted

A curve starts at the image and ends at the substrate, by default zero after
normalisation. Petsiuk, Das and Saenko, "RISE", BMVC 2018.`,
	Definition: ofBlends(stages.Definition{
		Formula: "f(xₖ), k = 0 … L, with xₖ = x·(1 − mₖ) + s·mₖ: the substrate s at the units mₖ that " +
			"are most relevant",
		Operator:  "replacement by the substrate, by default zero after normalisation",
		Reference: "the image, the first point",
	}),
	Version:  1,
	Defaults: DeletionParams{defaults("zero")},
})

func (p DeletionParams) curve() (Params, direction) { return p.Params, deletion }
