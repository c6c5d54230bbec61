package maps

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// RankParams are the parameters of [Rank].
type RankParams struct {
	Values string `yaml:"values" doc:"magnitude ranks by |sum over channels|, signed by the sum" choices:"magnitude|signed"`
	Ties   string `yaml:"ties" doc:"how equal pixels are ordered: row by row, which favours the top left, or at random, drawn for each map" choices:"index|random"`
}

// Rank orders pixels by relevance. Perturbation stages take ranks instead of maps, so that maps with equal
// orders are perturbed once.
var Rank = stages.New(stages.Def[RankParams]{
	Name: "maps/rank",
	Doc: `the order of pixels by relevance

Channels are summed, and each pixel gets its place in descending order: 0 is the
most relevant. Equal pixels keep their order, row by row, or come in one that is
drawn for the map, the same for equal maps. A map with pixels that are not numbers has
no order, nor has a constant one unless it's drawn: where one would come row by row, the
scores that follow from it would tell of the images' top and bottom. They are undefined.`,
	Version:  3,
	Relation: stages.Each,
	Seeded:   true,
	Inputs:   []stages.Port{{Name: "maps", Type: stages.Maps, Doc: "attribution maps"}},
	Outputs:  []stages.Port{{Name: "ranks", Type: stages.Ranks, Doc: "the place of every pixel"}},
	Defaults: RankParams{Values: "magnitude", Ties: "index"},
	Variants: []stages.Variant{{
		Item: "equal pixels", Default: "ties: index",
		Differs: "the codes of RISE and MAS leave the order of equal pixels, and of a constant map, to an " +
			"unstable sort; ROAD's adds a little noise to all pixels (ties: random draws for equal ones " +
			"alone)",
	}},
	Run: func(ctx context.Context, p RankParams, e *stages.Env) error {
		for i := range e.Len() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			m, err := stages.DecodeTensor(e.In("maps", i))
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			values, height, width, err := metric.Values(m, p.Values)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			var draw *rand.Rand
			if p.Ties == "random" {
				draw = e.Rand("ties", i)
			}
			ranks, shape := rank(values, draw), []int{height, width}
			switch {
			case ranks == nil:
				e.WarnItem(i, "its map has pixels that are not numbers, so that their order, and the "+
					"scores that follow from it, are undefined")
				shape = []int{0, 0}
			case draw == nil && len(values) > 1 && slices.Max(values) == slices.Min(values):
				e.WarnItem(i, "its map is constant, so that the order of its pixels, and the scores that "+
					"follow from it, are undefined; ties: random draws one")
				ranks, shape = nil, []int{0, 0}
			}
			e.Put("ranks", i, stages.NewTensor(ranks, shape...).Encode())
			e.Done(1)
		}
		return nil
	},
})

// rank returns the position of every value in descending order. Ties are in order of index, or in random
// order. It returns nil if a value is NaN, which has no order.
func rank(values []float64, draw *rand.Rand) []uint32 {
	if slices.ContainsFunc(values, math.IsNaN) {
		return nil
	}
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	if draw != nil {
		draw.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	ranks := make([]uint32, len(values))
	for place, i := range order {
		ranks[i] = uint32(place)
	}
	return ranks
}
