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

// Ablation removes shares of the pixels (feature ablation).
var Ablation = program.Stage(stages.Def[AblationParams]{
	Name: "perturb/ablation",
	Doc: `the model's response while shares of pixels are removed

By default in ten steps, setting pixels to zero after normalisation in all channels at
once. With a good map the response falls early if the most relevant pixels are removed
first (morf), and late if they are removed last (lerf). Steps and substrate are the
common ones; the Meta-Rank paper, which ranks methods by such curves, doesn't state its
own.`,
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
