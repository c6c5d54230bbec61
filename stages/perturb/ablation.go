package perturb

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// AblationParams are the parameters of [Ablation].
type AblationParams struct {
	Params
	Order string `yaml:"order" doc:"morf removes the most relevant pixels first, lerf the least relevant" choices:"morf|lerf"`
}

// Ablation is the stage of feature ablation by shares of the pixels.
var Ablation = program.Stage(stages.Def[AblationParams]{
	Name: "perturb/ablation",
	Doc: `the model's answer while shares of pixels are removed

By default in ten steps, each pixel set to zero after normalisation in all channels
at once. A good map makes the answer fall early when the most relevant pixels go
first (morf) and late when they go last (lerf). The grid and the fill are the usual
ones; the Meta-Rank paper, which ranks methods by such curves, doesn't state its own.`,
	Version:  1,
	Relation: stages.Each,
	Seeded:   true,
	Device:   true,
	Inputs:   inputs(),
	Outputs:  outputs(),
	Defaults: AblationParams{Params: ablationDefaults(), Order: "morf"},
	Facts: func(p AblationParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		return p.facts(p.direction(), in)
	},
	Run: func(ctx context.Context, p AblationParams, e *stages.Env) error {
		return p.run(ctx, p.direction(), e)
	},
})

func ablationDefaults() Params {
	p := defaults("zero")
	p.Steps = 10
	return p
}

func (p AblationParams) direction() direction {
	if p.Order == "lerf" {
		return lerf
	}
	return morf
}
