package score

import (
	"context"
	"crypto/sha256"
	"math"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// ConsistencyParams are the parameters of [Consistency].
type ConsistencyParams struct {
	Values string `yaml:"values" doc:"a pixel's relevance, after summing channels" choices:"signed|magnitude|positive"`
	Region int    `yaml:"region" doc:"side of the squares whose mean relevance is labelled; 1: pixels" min:"1" max:"1024"`
	Label  string `yaml:"label" doc:"what two maps must have in common: the signs of all means, those of the first five, the order of the means, or the means rounded to two decimals of the largest magnitude" choices:"signs|first-signs|order|rounded"`
}

// Consistency is the local consistency of Dasgupta, Frost and Moshkovitz, "Framework for Evaluating
// Faithfulness of Local Explanations", ICML 2022, of maps as Quantus transfers it to them.
var Consistency = stages.New(stages.Def[ConsistencyParams]{
	Name: "score/consistency",
	Doc: `share of the equally labelled images of the same class

Of the other images whose map has the same label, the share for which the model predicts
the same class. The label stands for the explanation, of which maps have too many: the
signs of the mean relevance of regions, by default. The score belongs to the set of
images: it changes with the others. Port alike has the share of the others that have the
label. Dasgupta et al., ICML 2022, define it for explanations that are equal or not.`,
	Definition: stages.Definition{
		Formula: "|{k ≠ i : l(a_k) = l(aᵢ), ŷ_k = ŷᵢ}| / |{k ≠ i : l(a_k) = l(aᵢ)}|, l the label of a " +
			"map",
		Unit:        "a region of the map; the score is of an image",
		Operator:    "none",
		Response:    "the predicted classes",
		Reference:   "the labels and classes of the other images",
		Aggregation: "the share among the images that are alike",
		Randomness:  "none, besides the choice of images",
		Undefined: "where no other image has the label, for a map without relevance or with a value that " +
			"isn't finite",
	},
	Version:  1,
	Relation: stages.Whole,
	Inputs:   populationInputs(),
	Outputs:  populationOutputs(),
	Variants: []stages.Variant{{
		Item: "the label", Default: "label: signs, region: 16, values: signed",
		Differs: "Quantus' default is label: first-signs, region: 1, values: magnitude: whether each of " +
			"the first five pixels is 0, the same for nearly all maps, when the score is the share of the " +
			"class in the batch",
	}, {
		Item: "no other image has the label", Default: "undefined",
		Differs: "Quantus gives 0, which enters means",
	}},
	Defaults: ConsistencyParams{Values: metric.Signed, Region: 16, Label: "signs"},
	Facts: func(ConsistencyParams, map[string]stages.Facts) (map[string]stages.Facts, error) {
		return populationFacts(), nil
	},
	Run: func(ctx context.Context, c ConsistencyParams, e *stages.Env) error {
		p, err := newPopulation(ctx, e, c.Values)
		if err != nil {
			return err
		}
		labelled, defined := map[[sha256.Size]byte][]int{}, make([]bool, len(p.items))
		t := newTally(len(p.items))
		for i := range p.items {
			v, width, err := p.relevance(ctx, i)
			if err != nil {
				return err
			}
			if v == nil {
				continue
			}
			defined[i] = true
			// A digest, since the label of an order of pixels may be longer than the map.
			l := sha256.Sum256([]byte(c.label(metric.Regions(len(v)/width, width, c.Region).Mean(v))))
			for _, k := range labelled[l] {
				p.pair(t, i, k)
			}
			labelled[l] = append(labelled[l], i)
		}
		p.emit(e, t, defined)
		return nil
	},
})

// label returns the label of a map with these means.
func (c ConsistencyParams) label(means []float64) string {
	var words []string
	sign := func(x float64) string {
		switch {
		case x > 0:
			return "+"
		case x < 0:
			return "−"
		}
		return "0"
	}
	switch c.Label {
	case "order":
		for _, i := range metric.Order(means) {
			words = append(words, strconv.Itoa(i))
		}
		return strings.Join(words, " ")
	case "first-signs":
		means = means[:min(5, len(means))]
	case "rounded":
		for _, x := range means {
			words = append(words, strconv.FormatFloat(math.RoundToEven(x*100)+0, 'f', 0, 64)) // −0 is 0
		}
		return strings.Join(words, " ")
	}
	for _, x := range means {
		words = append(words, sign(x))
	}
	return strings.Join(words, "")
}
