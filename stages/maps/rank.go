package maps

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/modelfile"
)

// RankParams are the parameters of [Rank].
type RankParams struct {
	Values string `yaml:"values" doc:"magnitude ranks by |sum over channels|, signed by the sum, positive by the sum where it is above 0: of texts alone, whose other tokens have no place" choices:"magnitude|signed|positive"`
	Ties   string `yaml:"ties" doc:"how equal pixels are ordered: row by row, which favours the top left, at random, drawn for each map, or not at all: merged, they share the first of their places" choices:"index|random|merged"`
	Unit   string `yaml:"unit" key:"added" doc:"what is ordered: pixels, square regions, or the segments on the port segments, by the mean of their pixels" choices:"pixel|region|segment"`
	Region int    `yaml:"region" key:"added" doc:"unit region: their side in pixels; the right and the lower border cut them off" min:"1" max:"1024"`
}

// Rank orders pixels by relevance. Perturbation stages take ranks instead of maps, so that maps with equal
// orders are perturbed once.
var Rank = stages.New(stages.Def[RankParams]{
	Name: "maps/rank",
	Doc: `the order of pixels by relevance

Channels are summed, and each pixel gets its place in descending order: 0 is the
most relevant. Equal pixels keep their order, row by row, come in one that is drawn for
the map, the same for equal maps, or share a place. A map with pixels that are not
numbers has no order, nor has a constant one whose pixels come row by row: the scores
that follow from it would tell of the images' top and bottom. They are undefined.

Regions and segments are ordered by the mean over their pixels; each pixel gets the
place of its region or segment. Of a text whose tokens are on the port texts, special
tokens have no place, 4294967295, and what they have on the map doesn't count.`,
	Version:  3,
	Relation: stages.Each,
	Seeded:   true,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "attribution maps"},
		{Name: "segments", Type: stages.Segments, Optional: true, Added: true,
			Doc: "unit segment: which segment each pixel is of"},
		{Name: stages.TextsName, Type: stages.Tokens, Optional: true, Added: true,
			Doc: "the texts that the maps explain, of which special tokens aren't ordered"},
	},
	Outputs:  []stages.Port{{Name: "ranks", Type: stages.Ranks, Doc: "the place of every pixel"}},
	Defaults: RankParams{Values: "magnitude", Ties: "index", Unit: "pixel", Region: 9},
	Variants: []stages.Variant{{
		Item: "equal pixels", Default: "ties: index",
		Differs: "the codes of RISE and MAS leave the order of equal pixels, and of a constant map, to an " +
			"unstable sort; ROAD's adds a little noise to all pixels (ties: random draws for equal ones " +
			"alone)",
	}},
	Check: func(p RankParams, wired func(string) bool) error {
		if texts := wired(stages.TextsName); texts && p.Unit != "pixel" {
			return stages.BadField("unit", "unit is %s, but the units of a text are its tokens: unit: pixel",
				p.Unit)
		} else if !texts && p.Values == metric.Positive {
			return stages.BadField("values", "values is positive, which leaves out tokens of texts: images "+
				"have pixels, of which all are ordered")
		}
		return stages.GoesWith("unit", p.Unit, "segment", "segments", wired("segments"))
	},
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
			units, err := p.units(e.In("segments", i), height, width)
			if err != nil {
				return fmt.Errorf("item %q: port segments: %w", e.Calls[i].ID, err)
			}
			compared := values
			if b := e.In(stages.TextsName, i); b != nil {
				if units, compared, err = p.tokens(b, values, height, width); err != nil {
					return fmt.Errorf("item %q: port texts: %w", e.Calls[i].ID, err)
				}
				values = units.Mean(values)
			} else if units != nil {
				values = units.Mean(values)
				compared = values
			}
			var draw *rand.Rand
			if p.Ties == "random" {
				draw = e.Rand("ties", i)
			}
			ranks, shape := rank(values, draw, p.Ties == "merged"), []int{height, width}
			switch {
			case ranks == nil:
				e.WarnItem(i, "its map has pixels that are not numbers, so that their order, and the "+
					"scores that follow from it, are undefined")
				shape = []int{0, 0}
			case p.Ties == "index" && len(compared) > 1 && slices.Max(compared) == slices.Min(compared):
				e.WarnItem(i, "its map is constant, so that the order of its pixels, and the scores that "+
					"follow from it, are undefined; ties: random draws one")
				ranks, shape = nil, []int{0, 0}
			case units != nil:
				ranks = metric.Spread(*units, ranks)
				for k, unit := range units.Of {
					if unit < 0 {
						ranks[k] = metric.NoUnit
					}
				}
			}
			e.Put("ranks", i, stages.NewTensor(ranks, shape...).Encode())
			e.Done(1)
		}
		return nil
	},
})

// units returns the regions or segments of an image, nil if pixels are ordered.
func (p RankParams) units(segments []byte, height, width int) (*metric.Units, error) {
	switch p.Unit {
	case "region":
		u := metric.Regions(height, width, p.Region)
		return &u, nil
	case "segment":
		u, err := metric.Segments(segments, height, width)
		return &u, err
	}
	return nil, nil
}

// tokens returns the tokens of a text that are ordered by the values of its map, and the values of all that
// aren't special.
func (p RankParams) tokens(payload []byte, values []float64, height, width int) (ordered *metric.Units,
	compared []float64, err error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, nil, err
	}
	text, err := modelfile.TokensOf(t)
	if err != nil {
		return nil, nil, err
	}
	if height != 1 || width != text.Len() {
		return nil, nil, fmt.Errorf("a map of %d×%d pixels doesn't match a text of %d tokens", height, width,
			text.Len())
	}
	compared = metric.Tokens(text.Special).Mean(values)
	left := text.Special
	if p.Values == metric.Positive {
		for i, v := range values {
			left[i] = left[i] || v <= 0
		}
	}
	u := metric.Tokens(left)
	return &u, compared, nil
}

// rank returns the position of every value in descending order. Ties are in order of index, or in random
// order; merged, they have the position of their first. It returns nil if a value is NaN, which has no order.
func rank(values []float64, draw *rand.Rand, merged bool) []uint32 {
	if slices.ContainsFunc(values, math.IsNaN) {
		return nil
	}
	order := make([]ranked, len(values))
	for i, v := range values {
		order[i].value, order[i].index = v, i
	}
	if draw != nil {
		draw.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	}
	for i := range order {
		order[i].tie = i
	}
	slices.SortFunc(order, func(a, b ranked) int {
		switch {
		case a.value > b.value:
			return -1
		case a.value < b.value:
			return 1
		}
		return a.tie - b.tie
	})
	ranks := make([]uint32, len(values))
	for place, r := range order {
		ranks[r.index] = uint32(place)
		if merged && place > 0 && r.value == order[place-1].value {
			ranks[r.index] = ranks[order[place-1].index]
		}
	}
	return ranks
}

// A ranked value has its index, and its place among equal values. Sorting these takes half the time of a
// stable sort of indices.
type ranked struct {
	value      float64
	index, tie int
}
