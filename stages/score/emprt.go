package score

import (
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// EMPRTParams are the parameters of [EMPRT].
type EMPRTParams struct {
	Bins   int    `yaml:"bins" doc:"the bins of the histogram, of equal width from the least to the greatest value" min:"1" max:"100000"`
	Values string `yaml:"values" doc:"a pixel's relevance: the sum over channels, or its magnitude" choices:"signed|magnitude"`
}

// EMPRT is the efficient model parameter randomisation test.
var EMPRT = stages.New(stages.Def[EMPRTParams]{
	Name: "score/emprt",
	Doc: `rise of the map's entropy when all weights are random

The entropy of a histogram of the map's values, for the model with random weights
relative to the trained model: a method that explains what the model has learnt has a
more complex map of a random one. It needs a single randomised model, that of
model/randomise with share: 1, and compares no pixels. Hedström, Weber, Lapuschkin and
Höhne, "Sanity Checks Revisited: An Exploration to Repair the Model Parameter
Randomisation Test", 2024.`,
	Definition: stages.Definition{
		Formula: "(H(a′) − H(a))/H(a), H = −Σ p ln p of the histogram of the map's values, a′ the map of " +
			"the model with random weights",
		Unit:        "a pixel",
		Operator:    "model/randomise with share: 1",
		Response:    "the method's map, of the same class",
		Reference:   "the map of the trained model",
		Aggregation: "the entropy of one histogram a map",
		Randomness:  "the random weights, by the seed of model/randomise",
		Undefined: "where the trained model's map is constant, and for a map with a value that isn't " +
			"finite",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "maps of the trained model"},
		{Name: "other", Type: stages.Maps, Doc: "maps of the same images, by the model with random weights"},
	},
	Outputs:  []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the rise, at least −1"}},
	Defaults: EMPRTParams{Bins: 100, Values: metric.Signed},
	Facts: func(EMPRTParams, map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Direction: stages.Higher, Low: -1, High: math.Inf(1), Tolerance: 5e-3,
			ItemTolerance: 5e-2}
		return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p EMPRTParams, e *stages.Env) error {
		for i := range e.Len() {
			trained, random, _, _, err := bothMaps(e, i, "maps", "other", p.Values)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("scores", i, stages.Scalar(p.rise(trained, random)))
			e.Done(1)
		}
		return nil
	},
})

// rise returns the relative rise of the entropy from a map to another.
func (p EMPRTParams) rise(trained, random []float64) float64 {
	if !metric.Defined(trained) || !metric.Defined(random) {
		return math.NaN()
	}
	before := metric.HistogramEntropy(trained, p.Bins)
	if before == 0 {
		return math.NaN()
	}
	return (metric.HistogramEntropy(random, p.Bins) - before) / before
}
