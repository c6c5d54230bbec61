package maps

import (
	"cmp"
	"context"
	"math"

	"github.com/runexp/runexp/stages"
)

// SignParams are the parameters of [Sign], which has none.
type SignParams struct{}

// Sign leaves of a map only whether its values are positive.
var Sign = stages.New(stages.Def[SignParams]{
	Name: "maps/sign",
	Doc: `the sign of each value of a map

Values become −1, 0 or 1, each channel for itself. score/gae weighs a map by the sign of
the impact.

  sign: {uses: maps/sign, in: {maps: masking.impact}}`,
	Version:  1,
	Relation: stages.Each,
	Inputs:   input(),
	Outputs:  output("maps of −1, 0 and 1"),
	Run: func(ctx context.Context, _ SignParams, e *stages.Env) error {
		return each(ctx, e, 0, func(_ int, f field) (field, error) {
			for k, v := range f.values {
				if !math.IsNaN(v) {
					f.values[k] = float64(cmp.Compare(v, 0))
				}
			}
			return f, nil
		})
	},
})
