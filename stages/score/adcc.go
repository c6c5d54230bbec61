package score

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/stat"
)

// ADCCParams are the parameters of [ADCC].
type ADCCParams struct{ AgainParams }

// ADCC is the score of Poppi, Cornia, Baraldi and Cucchiara, "Revisiting the Evaluation of Class Activation
// Mapping for Explainability", CVPR 2021 workshop.
var ADCC = stages.New(stages.Def[ADCCParams]{
	Name: "score/adcc",
	Doc: `average drop, coherency and complexity in one number

The harmonic mean of three parts, each from 0 to 1. Coherency: the map of the image masked
by its map agrees with the map. Simplicity, 1 less the complexity: the map, scaled to
[0,1], is small in the mean. And what is left of the probability on the masked image.
The method explains the images of perturb/soft-mask once more, for the same class, and
both stages read maps by the same values. Poppi, Cornia, Baraldi and Cucchiara,
"Revisiting the Evaluation of Class Activation Mapping for Explainability", CVPR 2021
workshop.`,
	Definition: stages.Definition{
		Formula: "3/(1/c + 1/(1 − k) + 1/(1 − d)), coherency c = (Pearson(a(x), a(x′)) + 1)/2, complexity " +
			"k = mean of m, drop d = max(0, p − p′)/p, for the map m scaled to [0,1] and x′ = m ⊙ x + (1 − " +
			"m) ⊙ s; 0 if a part is 0",
		Unit:        "a pixel",
		Operator:    "perturb/soft-mask: its substrate s and its values belong to the score",
		Response:    "probability of the target, and the method's map of the masked image",
		Reference:   "the image itself, and its map",
		Aggregation: "the harmonic mean of three parts, image by image; score/adcc-means has that of means",
		Randomness:  "none, except for the substrate random and the method's own",
		Undefined:   "where either map is constant or has a value that isn't finite, and unless p > 0",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs:   append(againPorts(), maskedPort()),
	Outputs: []stages.Port{
		{Name: "scores", Type: stages.Scores, Doc: "the harmonic mean"},
		{Name: "coherency", Type: stages.Scores, Doc: "agreement with the map of the masked image"},
		{Name: "complexity", Type: stages.Scores, Doc: "the mean of the map, scaled to [0,1]"},
		{Name: "drop", Type: stages.Scores, Doc: "the part of the probability that is lost"},
	},
	Variants: []stages.Variant{{
		Item: "mean over images", Default: "that of the images' scores",
		Differs: "OpenVINO XAI has the harmonic mean of the parts' means over images: score/adcc-means",
		Golden:  "masked_input",
	}},
	Defaults: ADCCParams{AgainParams{metric.Magnitude}},
	Facts: func(p ADCCParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := checkMasked(in); err != nil {
			return nil, err
		}
		if err := p.checkValues(in["masked"]); err != nil {
			return nil, err
		}
		return partFacts("drop"), nil
	},
	Run: func(_ context.Context, p ADCCParams, e *stages.Env) error {
		for i := range e.Len() {
			whole, masked, err := maskedProbabilities(e, i)
			var coherency, complexity float64
			if err == nil {
				coherency, complexity, err = p.again(e, i)
			}
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			drop := metric.Drop(whole, masked)
			e.Put("scores", i, stages.Scalar(metric.Harmonic(coherency, 1-complexity, 1-drop)))
			e.Put("coherency", i, stages.Scalar(coherency))
			e.Put("complexity", i, stages.Scalar(complexity))
			e.Put("drop", i, stages.Scalar(drop))
			e.Done(1)
		}
		return nil
	},
})

// AgainParams are the parameters of the scores that compare a map with that of the masked image.
type AgainParams struct {
	Values string `yaml:"values" doc:"a pixel's relevance before it is scaled to [0,1], as in perturb/soft-mask: the magnitude of the sum over channels, the signed sum, or its positive part" choices:"magnitude|signed|positive"`
}

// againPorts returns the ports of these scores.
func againPorts() []stages.Port {
	return []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "attribution maps"},
		{Name: "again", Type: stages.Maps,
			Doc: "the method's maps of the images that perturb/soft-mask makes with them"},
	}
}

// checkValues rejects a mask that was made of other values.
func (p AgainParams) checkValues(masked stages.Facts) error {
	if v, ok := masked["values"]; ok && v != p.Values {
		return stages.BadField("values", "values is %s, but perturb/soft-mask made the mask of values: %s",
			p.Values, v)
	}
	return nil
}

// partFacts returns the facts of a harmonic mean of parts and of its parts; more names the third one, of
// which less is better.
func partFacts(more string) map[string]stages.Facts {
	m := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 2e-3,
		ItemTolerance: orderJump}
	out := map[string]stages.Facts{"scores": m.Facts(nil), "coherency": m.Facts(nil)}
	m.Direction = stages.Lower
	out["complexity"] = m.Facts(nil)
	if more != "" {
		out[more] = m.Facts(nil)
	}
	return out
}

// again returns the coherency and the complexity of item i's map.
func (p AgainParams) again(e *stages.Env, i int) (coherency, complexity float64, err error) {
	m, again, _, _, err := bothMaps(e, i, "maps", "again", p.Values)
	if err != nil {
		return 0, 0, err
	}
	coherency = (stat.Pearson(m, again) + 1) / 2
	metric.MinMax(m)
	return coherency, metric.Average(m), nil
}
