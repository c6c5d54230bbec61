package maps

import (
	"context"
	"math"

	"github.com/runexp/runexp/stages"
)

// PositiveParams are the parameters of [Positive], which has none.
type PositiveParams struct{}

// Positive leaves the positive part of a map.
var Positive = stages.New(stages.Def[PositiveParams]{
	Name: "maps/positive",
	Doc: `the positive part of each value of a map

Values below 0 become 0, each channel for itself: what score/gae and the scores of
localisation see of a map, to be shown next to them.

  positive: {uses: maps/positive, in: {maps: maps}}`,
	Version:  1,
	Relation: stages.Each,
	Inputs:   input(),
	Outputs:  output("maps without values below 0"),
	Run: func(ctx context.Context, _ PositiveParams, e *stages.Env) error {
		return each(ctx, e, 0, func(_ int, f field) (field, error) {
			for k, v := range f.values {
				f.values[k] = math.Max(v, 0) // NaN stays
			}
			return f, nil
		})
	},
})
