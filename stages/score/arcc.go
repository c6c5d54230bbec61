package score

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// ARCCParams are the parameters of [ARCC].
type ARCCParams struct{ AgainParams }

// ARCC is [ADCC] with ROAD in the place of the drop, as pytorch-grad-cam has it.
var ARCC = stages.New(stages.Def[ARCCParams]{
	Name: "score/arcc",
	Doc: `ROAD, coherency and complexity in one number

As score/adcc, with ROAD in the place of the drop on the masked image: removed pixels are
imputed, so that the image isn't darkened by the map. Give perturb/road the shares
0.2, 0.4, 0.6 and 0.8, in both orders, and values: magnitude, as here. Half the
difference of the orders, which may be −½ to ½, is doubled, and 0 where it is negative.
pytorch-grad-cam 1.5.7, after Poppi, Cornia, Baraldi and Cucchiara, "Revisiting the
Evaluation of Class Activation Mapping for Explainability", CVPR 2021 workshop.`,
	Definition: stages.Definition{
		Formula: "3/(1/c + 1/(1 − k) + 1/r), coherency c and complexity k as in score/adcc, r = " +
			"min(max(mean over shares of p_lerf − p_morf, 0), 1); 0 if a part is 0",
		Unit:        "a pixel",
		Operator:    "perturb/road: removal and noisy linear imputation; perturb/soft-mask for the coherency",
		Response:    "probability of the target, and the method's map of the masked image",
		Reference:   "the two orders of removal, and the map of the image",
		Aggregation: "the mean over the curves' shares, and the harmonic mean of three parts",
		Randomness:  "the noise of perturb/road, by the experiment's seed and the image",
		Undefined: "where either map is constant or has a value that isn't finite, and where a curve is " +
			"undefined",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs:   append(againPorts(), morfLerf()...),
	Outputs: []stages.Port{
		{Name: "scores", Type: stages.Scores, Doc: "the harmonic mean"},
		{Name: "road", Type: stages.Scores, Doc: "the part of ROAD, from 0 to 1"},
	},
	Variants: []stages.Variant{{
		Item: "a part of 0", Default: "a score of 0",
		Differs: "pytorch-grad-cam adds 1e-8 to each part, so that a map whose orders are the wrong way " +
			"round has 3e-8; its percentiles are those of the pixels that stay, and its noise has no seed",
		Golden: "masked_input",
	}},
	Defaults: ARCCParams{AgainParams{metric.Magnitude}},
	Facts: func(_ ARCCParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := checkImputed(in); err != nil {
			return nil, err
		}
		m := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 2e-3,
			ItemTolerance: orderJump, Variant: in["lerf"]["variant"]}
		return map[string]stages.Facts{"scores": m.Facts(nil), "road": m.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p ARCCParams, e *stages.Env) error {
		for i := range e.Len() {
			morf, lerf, err := road(ROADParams{"probability"}, e, i)
			var coherency, complexity float64
			if err == nil {
				coherency, complexity, err = p.again(e, i)
			}
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			gap := min(max(lerf-morf, 0), 1) // twice the half that ROAD combines
			e.Put("scores", i, stages.Scalar(metric.Harmonic(coherency, 1-complexity, gap)))
			e.Put("road", i, stages.Scalar(gap))
			e.Done(1)
		}
		return nil
	},
})
