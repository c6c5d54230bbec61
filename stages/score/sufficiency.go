package score

import (
	"cmp"
	"context"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// SufficiencyParams are the parameters of [Sufficiency].
type SufficiencyParams struct {
	Values    string  `yaml:"values" doc:"a pixel's relevance, after summing channels" choices:"magnitude|positive|signed"`
	Threshold float64 `yaml:"threshold" doc:"images are alike up to this share of the largest distance of two maps" min:"0" max:"1"`
}

// Sufficiency is the local sufficiency of Dasgupta, Frost and Moshkovitz, "Framework for Evaluating
// Faithfulness of Local Explanations", ICML 2022, of maps as Quantus transfers it to them.
var Sufficiency = stages.New(stages.Def[SufficiencyParams]{
	Name: "score/sufficiency",
	Doc: `share of images with a similar map that have the same class

Of the other images whose map is as near as threshold, the share for which the model
predicts the same class. Maps are divided by their largest magnitude; the distance is
Euclidean, each pixel's difference divided by its standard deviation over the maps, and
threshold a share of the largest distance. Pixels that are equal in all maps don't
count. The score belongs to the set of images: it changes with the others. Port alike
has the share of the others that are alike. Dasgupta et al., ICML 2022, define it for
explanations that apply to an image or not; Quantus transfers it to maps.`,
	Definition: stages.Definition{
		Formula: "|{k ≠ i : d(aᵢ, a_k) ≤ t·max d, ŷ_k = ŷᵢ}| / |{k ≠ i : d(aᵢ, a_k) ≤ t·max d}|, d " +
			"the standardised Euclidean distance",
		Unit:        "an image",
		Operator:    "none",
		Response:    "the predicted classes",
		Reference:   "the maps and classes of the other images",
		Aggregation: "the share among the images that are alike",
		Randomness:  "none, besides the choice of images",
		Undefined: "where no other image is alike, for a map without relevance or with a value that " +
			"isn't finite",
	},
	Version:  1,
	Relation: stages.Whole,
	Inputs:   populationInputs(),
	Outputs:  populationOutputs(),
	Variants: []stages.Variant{{
		Item: "no other image is alike", Default: "undefined",
		Differs: "Quantus gives 0, which enters means",
	}, {
		Item: "pixels that are equal in all maps", Default: "left out",
		Differs: "Quantus divides 0 by 0, so that all distances are NaN and all scores 0: one pixel " +
			"without relevance in any map is enough",
	}, {
		Item: "the set", Default: "all images of the cell, each map by its largest magnitude",
		Differs: "Quantus compares the images of a batch, of 64, and divides all by the batch's largest " +
			"magnitude",
	}},
	Defaults: SufficiencyParams{Values: metric.Magnitude, Threshold: 0.6},
	Facts: func(SufficiencyParams, map[string]stages.Facts) (map[string]stages.Facts, error) {
		return populationFacts(), nil
	},
	Run: func(ctx context.Context, s SufficiencyParams, e *stages.Env) error {
		p, err := newPopulation(ctx, e, s.Values)
		if err != nil {
			return err
		}
		weights, defined, err := p.precisions(ctx)
		if err != nil {
			return err
		}
		largest := 0.0
		if err := p.pairs(ctx, weights, func(_, _ int, d float64) { largest = max(largest, d) }); err != nil {
			return err
		}
		t := newTally(len(p.items))
		err = p.pairs(ctx, weights, func(i, k int, d float64) {
			if largest == 0 || d/largest <= s.Threshold {
				p.pair(t, i, k)
			}
		})
		if err != nil {
			return err
		}
		p.emit(e, t, defined)
		return nil
	},
})

// precisions returns the reciprocal of each pixel's variance over the maps, 0 for one without, and which maps
// are defined.
func (p *population) precisions(ctx context.Context) (weights []float64, defined []bool, err error) {
	var mean, square []float64
	n := 0.0
	defined = make([]bool, len(p.items))
	for i := range p.items {
		v, _, err := p.relevance(ctx, i)
		if err != nil {
			return nil, nil, err
		}
		if v == nil {
			continue
		}
		defined[i] = true
		if n++; mean == nil {
			mean, square = make([]float64, len(v)), make([]float64, len(v))
		}
		for k, x := range v { // Welford's algorithm
			d := x - mean[k]
			mean[k] += d / n
			square[k] += float64(d * (x - mean[k]))
		}
	}
	for k, s := range square {
		if square[k] = 0; s > 0 {
			square[k] = (n - 1) / s
		}
	}
	return square, defined, nil
}

// pairs calls a function with the distance of every two maps that are defined. It reads the maps in blocks,
// several times if they are many, so that memory doesn't grow with their number.
func (p *population) pairs(ctx context.Context, weights []float64, f func(i, k int, d float64)) error {
	block := cmp.Or(p.block, max(1, held/max(1, p.pixels)))
	read := func(from int) ([][]float64, error) {
		maps := make([][]float64, min(block, len(p.items)-from))
		for i := range maps {
			var err error
			if maps[i], _, err = p.relevance(ctx, from+i); err != nil {
				return nil, err
			}
		}
		return maps, nil
	}
	for a := 0; a < len(p.items); a += block {
		rows, err := read(a)
		if err != nil {
			return err
		}
		for b := a; b < len(p.items); b += block {
			columns := rows
			if b > a {
				if columns, err = read(b); err != nil {
					return err
				}
			}
			for i, x := range rows {
				for k, y := range columns {
					if x != nil && y != nil && a+i < b+k {
						f(a+i, b+k, distance(x, y, weights))
					}
				}
			}
		}
	}
	return nil
}

// distance returns the Euclidean distance of two maps with weights for the squares of the pixels'
// differences.
func distance(x, y, weights []float64) float64 {
	sum := 0.0
	for k, w := range weights {
		d := x[k] - y[k]
		sum += float64(w * float64(d*d))
	}
	return math.Sqrt(sum)
}
