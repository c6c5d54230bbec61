package maps

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// ReduceParams are the parameters of [Reduce].
type ReduceParams struct {
	How metric.Reduction `yaml:"how" doc:"what is made of the channels of a pixel: their sum, its magnitude, the sum of magnitudes, the largest magnitude, the mean" choices:"sum|abs-sum|sum-abs|max-abs|mean"`
}

// Reduce makes one channel of several.
var Reduce = stages.New(stages.Def[ReduceParams]{
	Name: "maps/reduce",
	Doc: `one value a pixel, from the channels of a map

Maps [C,H,W], as attribution methods make them with reduce: none, become [H,W]. A map
[H,W] has one channel.`,
	Version:  1,
	Relation: stages.Each,
	Inputs:   input(),
	Outputs:  output("one map [H,W] for each"),
	Variants: []stages.Variant{{
		Item: "channels", Default: "how: sum",
		Differs: "papers and codes reduce in different ways: the code of MAS takes abs-sum, Rao et al. sum " +
			"(of magnitudes, for derivatives: sum-abs), Simonyan et al. max-abs",
	}},
	Declares: func(p ReduceParams, in map[string]stages.Declared) stages.Declared {
		if p.How == metric.Sum {
			return in["maps"]
		}
		if target := in["maps"]["target"]; target != "" {
			return stages.Declared{"target": target}
		}
		return nil
	},
	Defaults: ReduceParams{How: metric.Sum},
	Run: func(ctx context.Context, p ReduceParams, e *stages.Env) error {
		return each(ctx, e, 0, func(_ int, f field) (field, error) { return f.reduced(p.How), nil })
	},
})
