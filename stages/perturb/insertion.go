package perturb

import "github.com/runexp/runexp/stages"

// InsertionParams are the parameters of [Insertion].
type InsertionParams struct{ Params }

// Insertion is RISE's insertion metric.
var Insertion = blending(stages.Def[InsertionParams]{
	Name: "perturb/insertion",
	Doc: `the model's response while relevant pixels are inserted

A curve starts at the substrate, by default the image blurred as in the code of
Magnitude-Aligned Scoring, and ends at the image. Petsiuk, Das and Saenko, "RISE",
BMVC 2018.`,
	Definition: ofBlends(stages.Definition{
		Formula: "f(xₖ), k = 0 … L, with xₖ = s·(1 − mₖ) + x·mₖ: the image at the units mₖ that are " +
			"most relevant, the substrate s elsewhere",
		Operator:  "replacement of the substrate, by default the blurred image",
		Reference: "the substrate, the first point",
	}),
	Version:  1,
	Defaults: InsertionParams{defaults("blur")},
})

func (p InsertionParams) curve() (Params, direction) { return p.Params, insertion }
