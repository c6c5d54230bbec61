package perturb

import "github.com/runexp/runexp/stages"

// AblationParams are the parameters of [Ablation].
type AblationParams struct {
	Params
	Order string `yaml:"order" doc:"morf removes the most relevant pixels first, lerf the least relevant; random draws an order for each image, the same for all maps" choices:"morf|lerf|random"`
}

// Ablation removes shares of the pixels (feature ablation).
var Ablation = blending(stages.Def[AblationParams]{
	Name: "perturb/ablation",
	Doc: `the model's response while shares of pixels are removed

By default in ten steps, setting pixels to zero after normalisation in all channels at
once. With a good map the response falls early if the most relevant pixels are removed
first (morf), and late if they are removed last (lerf). Steps and substrate are the
common ones; Duan et al., ECCV 2024 (Meta-Rank), who rank methods by such curves, don't
state their own.`,
	Definition: ofBlends(stages.Definition{
		Formula: "f(xₖ), k = 0 … L, with xₖ = x·(1 − mₖ) + s·mₖ: the substrate s at the units mₖ that " +
			"come first in the order, of relevance (morf), against it (lerf), or random",
		Operator:  "replacement by the substrate, by default zero after normalisation",
		Reference: "the image, the first point",
		Randomness: "by the experiment's seed: for the image with order: random and substrate: random, " +
			"for the map with ties: random",
		Undefined: "for a map with a value that isn't a number, and with ties: index for one whose " +
			"units are all equal; never with order: random",
	}),
	Version:  1,
	Defaults: AblationParams{Params: ablationDefaults(), Order: "morf"},
})

func ablationDefaults() Params {
	p := defaults("zero")
	p.Steps = 10
	return p
}

func (p AblationParams) curve() (Params, direction) { return p.Params, removal(p.Order) }
