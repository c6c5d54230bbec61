package perturb

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// InsertionParams are the parameters of [Insertion].
type InsertionParams struct{ Params }

// Insertion is RISE's insertion metric.
var Insertion = program.Stage(stages.Def[InsertionParams]{
	Name: "perturb/insertion",
	Doc: `the model's response while relevant pixels are inserted

A curve starts at the substrate, by default the image blurred as in the code of
Magnitude-Aligned Scoring, and ends at the image. Petsiuk, Das and Saenko, "RISE",
BMVC 2018.`,
	Version:  1,
	Relation: stages.Each,
	Seeded:   true,
	Device:   true,
	Inputs:   inputs(),
	Outputs:  outputs(),
	Defaults: InsertionParams{defaults("blur")},
	Facts: func(p InsertionParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		return p.facts(insertion, in)
	},
	Run: func(ctx context.Context, p InsertionParams, e *stages.Env) error {
		return p.run(ctx, insertion, e)
	},
})
