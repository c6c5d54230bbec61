package score

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// CompactnessParams are the parameters of [Compactness].
type CompactnessParams struct {
	Values  string  `yaml:"values" doc:"a pixel's relevance, after summing channels: its magnitude, or its positive part" choices:"magnitude|positive"`
	Bins    int     `yaml:"bins" doc:"histogram-entropy: bins from the smallest to the largest value; eMPRT has 100, pnpxai 10" min:"1" max:"65536"`
	Epsilon float64 `yaml:"epsilon" doc:"effective-complexity: the share of the largest value that a pixel's must exceed" min:"0" max:"1"`
}

// Compactness measures how few pixels have a map's relevance.
var Compactness = stages.New(stages.Def[CompactnessParams]{
	Name: "score/compactness",
	Doc: `how few pixels have the relevance: Gini index, entropies

Of the n pixels' relevances a: gini is their Gini index, Σ(2i − n − 1)·aᵢ / (n·Σa) in
rising order, the sparseness of Chalasani et al., ICML 2020. entropy is −Σ p·ln p of p =
a/Σa, the complexity of Bhatt et al., IJCAI 2020, and entropy-share divides it by ln n.
effective-complexity counts the pixels above epsilon of the largest, after Nguyen and
Martínez 2020, and effective-share divides the count by n. histogram-entropy is the
entropy of a histogram of the signed sums over channels, as in eMPRT of Hedström et al.
2024: another number, and of how varied values are, not of how few pixels have them. It
is 0 for a constant map, too, so that it has no direction: score/emprt compares that of
two models' maps. No model takes part: a map of one random pixel is the most compact.`,
	Definition: stages.Definition{
		Formula: "Gini index Σ(2i−n−1)·aᵢ / (n·Σa); entropy −Σ p·ln p of p = a/Σa, and by ln n; entropy of " +
			"a histogram; |{a > ε·max a}|, and by n",
		Unit:        "a pixel",
		Operator:    "none",
		Response:    "none besides the map",
		Reference:   "none",
		Aggregation: "over the pixels, by the formula",
		Randomness:  "none",
		Undefined: "for a map without relevance, and for one with a value that isn't finite; entropy-share " +
			"also for a single pixel",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs:   []stages.Port{{Name: "maps", Type: stages.Maps, Doc: "attribution maps"}},
	Outputs: []stages.Port{
		{Name: "gini", Type: stages.Scores, Doc: "0 if all pixels are equal, 1 − 1/n if one has all"},
		{Name: "entropy", Type: stages.Scores, Doc: "0 if one pixel has all, ln n if all are equal"},
		{Name: "entropy-share", Type: stages.Scores, Doc: "the entropy divided by ln n, in [0,1]"},
		{Name: "histogram-entropy", Type: stages.Scores, Doc: "of the histogram, at most ln bins"},
		{Name: "effective-complexity", Type: stages.Scores, Doc: "number of pixels above epsilon"},
		{Name: "effective-share", Type: stages.Scores, Doc: "their share of the image, in [0,1]"},
	},
	Variants: []stages.Variant{{
		Item: "the Gini index", Default: "of the values",
		Differs: "Quantus adds 1e-7 to each value, of maps divided by the largest magnitude of their " +
			"batch: an index of 0 for a map without relevance",
	}, {
		Item: "entropy", Default: "values: magnitude",
		Differs: "Quantus adds 1e-12 inside the logarithm, and keeps signs with abs=False, when it is no " +
			"entropy",
	}, {
		Item: "effective complexity", Default: "a count of pixels",
		Differs: "Nguyen and Martínez ask the model: their number is that of the most relevant features " +
			"which must be known for an expected loss below a tolerance. Quantus counts, as here, but " +
			"divides by the largest magnitude of the batch",
	}},
	Defaults: CompactnessParams{Values: metric.Magnitude, Bins: 100, Epsilon: 1e-5},
	Facts:    compactnessFacts,
	Run: func(_ context.Context, p CompactnessParams, e *stages.Env) error {
		for i := range e.Len() {
			c, err := p.of(e.In("maps", i))
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			for _, port := range e.Stage.Outputs {
				x, defined := c[port.Name]
				if !defined {
					x = math.NaN()
				}
				e.Put(port.Name, i, stages.Scalar(x))
			}
			e.Done(1)
		}
		return nil
	},
})

func compactnessFacts(p CompactnessParams, _ map[string]stages.Facts) (map[string]stages.Facts, error) {
	const nats, pixels = "nats", "pixels"
	m := map[string]stages.Measure{
		"gini":          {Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-4},
		"entropy":       {Unit: nats, High: math.Inf(1), Tolerance: 1e-3},
		"entropy-share": {Unit: "share", High: 1, Tolerance: 1e-4},
		"histogram-entropy": {Unit: nats, Direction: stages.None, High: math.Log(float64(p.Bins)),
			Tolerance: 1e-2},
		"effective-complexity": {Unit: pixels, High: math.Inf(1), Tolerance: 10},
		"effective-share":      {Unit: "share", High: 1, Tolerance: 1e-3},
	}
	out := map[string]stages.Facts{}
	for port, m := range m {
		if m.Direction == "" {
			m.Direction = stages.Lower
		}
		m.ItemTolerance = 10 * m.Tolerance
		out[port] = m.Facts(nil)
	}
	return out, nil
}

// of returns the numbers of a map that are defined, by port.
func (p CompactnessParams) of(payload []byte) (map[string]float64, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	values, _, _, err := metric.Values(t, p.Values)
	if err != nil {
		return nil, err
	}
	signed, _, _, err := metric.Values(t, metric.Signed)
	if err != nil || !metric.Defined(signed) || !metric.Relevance(values) { // the positive part of −∞ is 0
		return nil, err
	}
	// Sums of shares of the largest value don't overflow.
	largest := slices.Max(values)
	for i := range values {
		values[i] /= largest
	}
	n := float64(len(values))
	entropy, above := metric.Entropy(values), float64(metric.Exceeding(values, p.Epsilon))
	share := entropy / math.Log(n)
	if len(values) == 1 {
		share = math.NaN() // 0/0
	}
	return map[string]float64{
		"gini":                 metric.Gini(values),
		"entropy":              entropy,
		"entropy-share":        min(share, 1),
		"histogram-entropy":    min(metric.HistogramEntropy(signed, p.Bins), math.Log(float64(p.Bins))),
		"effective-complexity": above,
		"effective-share":      above / n,
	}, nil
}
