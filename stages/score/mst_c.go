package score

import (
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// MSTCParams are the parameters of [MSTC].
type MSTCParams struct {
	Values     string  `yaml:"values" doc:"a pixel's relevance, after summing channels: its magnitude, or its positive part" choices:"magnitude|positive"`
	Quantile   float64 `yaml:"quantile" doc:"salient are the pixels that reach this quantile of the values" min:"0" max:"0.9999"`
	Neighbours int     `yaml:"neighbours" doc:"how many of the nearest salient pixels a pixel is joined to, and those as near as the last" min:"1" max:"256"`
}

// MSTC is the minimum spanning tree compactness of Mesgari, Ma, Samek, Lapuschkin and Weber, "Structural
// Compactness as a Complementary Criterion for Explanation Quality", 2026.
var MSTC = stages.New(stages.Def[MSTCParams]{
	Name: "score/mst-c",
	Doc: `how compact the salient pixels are: MST-C

100·d · 1/√A · n/ℓ of the n pixels that reach the quantile: d is the image's diagonal, A
the area of the convex hull of their centres, ℓ the length of the minimum spanning
forest of the graph that joins each to its nearest ones. Where the centres are on one
line, d takes the place of √A. Distances between parts of the graph don't count; port
components has their number. Where equal values compete for the quantile, all of them
are salient: port salient has the share of the image that is. Mesgari et al. 2026.`,
	Definition: stages.Definition{
		Formula:     "100·d · 1/√A · n/ℓ",
		Unit:        "a pixel",
		Operator:    "none",
		Response:    "none besides the map",
		Reference:   "none",
		Aggregation: "one number of the salient pixels' hull and forest",
		Randomness:  "none",
		Undefined: "for a map without relevance, for one with a value that isn't finite, and for fewer " +
			"than two salient pixels",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs:   []stages.Port{{Name: "maps", Type: stages.Maps, Doc: "attribution maps"}},
	Outputs: []stages.Port{
		{Name: "scores", Type: stages.Scores, Doc: "the compactness, at least 0"},
		{Name: "salient", Type: stages.Scores, Doc: "share of the image that is salient, in [0,1]"},
		{Name: "components", Type: stages.Scores, Doc: "connected parts of the graph of neighbours"},
	},
	Variants: []stages.Variant{{
		Item: "a map of zeros", Default: "undefined",
		Differs: "Quantus' MSTC (its main branch of August 2026, in no release) gives 0, which enters means",
	}, {
		Item: "neighbours that are equally far", Default: "all of them",
		Differs: "Quantus joins exactly as many as asked for, which of those at the same distance by the " +
			"order of a search tree: the score of a mirrored map can differ",
	}},
	Defaults: MSTCParams{Values: metric.Magnitude, Quantile: 0.8, Neighbours: 20},
	Facts: func(MSTCParams, map[string]stages.Facts) (map[string]stages.Facts, error) {
		scores := stages.Measure{Direction: stages.Higher, High: math.Inf(1), Tolerance: 0.5,
			ItemTolerance: 20}
		salient := stages.Measure{Unit: "share", Direction: stages.None, High: 1, Tolerance: 1e-3,
			ItemTolerance: orderJump}
		components := stages.Measure{Direction: stages.None, High: math.Inf(1), Tolerance: 0.5,
			ItemTolerance: 10}
		return map[string]stages.Facts{"scores": scores.Facts(nil), "salient": salient.Facts(nil),
			"components": components.Facts(nil)}, nil
	},
	Run: func(ctx context.Context, p MSTCParams, e *stages.Env) error {
		for i := range e.Len() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := p.put(e, i); err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Done(1)
		}
		return nil
	},
})

// put puts the results of item i.
func (p MSTCParams) put(e *stages.Env, i int) error {
	t, err := stages.DecodeTensor(e.In("maps", i))
	if err != nil {
		return err
	}
	values, height, width, err := metric.Values(t, p.Values)
	if err != nil {
		return err
	}
	score, salient, components := math.NaN(), math.NaN(), math.NaN()
	if metric.Relevance(values) {
		m := metric.MSTCOf(values, height, width, p.Quantile, p.Neighbours)
		n := len(values)
		if distinct := n - int(math.Ceil(p.Quantile*float64(n-1))); m.Points > distinct {
			e.WarnItem(i, "values that are equal compete for the quantile, so that more pixels are salient "+
				"than the quantile says: port salient has their share")
		}
		if score = m.Score; !math.IsNaN(score) {
			salient, components = float64(m.Points)/float64(n), float64(m.Components)
		}
	}
	for port, x := range map[string]float64{"scores": score, "salient": salient, "components": components} {
		e.Put(port, i, stages.Scalar(x))
	}
	return nil
}
