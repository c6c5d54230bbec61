package perturb

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// DeletionParams are the parameters of [Deletion].
type DeletionParams struct{ Params }

// Deletion is RISE's deletion metric.
var Deletion = program.Stage(stages.Def[DeletionParams]{
	Name: "perturb/deletion",
	Doc: `the model's response while relevant pixels are deleted

A curve starts at the image and ends at the substrate, by default zero after
normalisation. Petsiuk, Das and Saenko, "RISE", BMVC 2018.`,
	Version:  1,
	Relation: stages.Each,
	Seeded:   true,
	Device:   true,
	Inputs:   inputs(),
	Outputs:  outputs(),
	Defaults: DeletionParams{defaults("zero")},
	Facts: func(p DeletionParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		return p.facts(deletion, in)
	},
	Run: func(ctx context.Context, p DeletionParams, e *stages.Env) error { return p.run(ctx, deletion, e) },
})
