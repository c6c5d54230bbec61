package maps

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
)

// RankParams are the parameters of [Rank].
type RankParams struct {
	Values string `yaml:"values" doc:"magnitude ranks by |sum over channels|, signed by the sum" choices:"magnitude|signed"`
}

// Rank is the stage that orders pixels by relevance. The perturbation stages have
// it put before their maps, so that maps with equal orders are perturbed once.
var Rank = stages.New(stages.Def[RankParams]{
	Name: "maps/rank",
	Doc: `the order of pixels by relevance

Channels are summed, and each pixel gets its place in descending order: 0 is the
most relevant. Equal pixels keep their order, row by row. A map with pixels that
are not numbers has no order, and the scores that follow from it are undefined.`,
	Version:  2,
	Relation: stages.Each,
	Inputs:   []stages.Port{{Name: "maps", Type: stages.Maps, Doc: "attribution maps"}},
	Outputs:  []stages.Port{{Name: "ranks", Type: stages.Ranks, Doc: "the place of every pixel"}},
	Defaults: RankParams{Values: "magnitude"},
	Run: func(ctx context.Context, p RankParams, e *stages.Env) error {
		for i := range e.Len() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			m, err := stages.DecodeTensor(e.In("maps", i))
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			f, err := fieldOf(m)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			f = f.reduced("sum")
			values := f.values
			if p.Values == "magnitude" {
				for k, v := range values {
					values[k] = math.Abs(v)
				}
			}
			ranks, shape := rank(values), f.shape()
			if ranks == nil {
				e.WarnItem(i, "its map has pixels that are not numbers, so that their order, and the scores that follow from it, are undefined")
				shape = []int{0, 0}
			}
			e.Put("ranks", i, stages.NewTensor(ranks, shape...).Encode())
			e.Done(1)
		}
		return nil
	},
})

// rank returns the place of every value in descending order, ties in order of
// index. It returns nil if a value is NaN, which is neither before another nor
// behind it.
func rank(values []float64) []uint32 {
	if slices.ContainsFunc(values, math.IsNaN) {
		return nil
	}
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if c := cmp.Compare(values[b], values[a]); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	ranks := make([]uint32, len(values))
	for place, i := range order {
		ranks[i] = uint32(place)
	}
	return ranks
}
