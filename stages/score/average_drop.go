package score

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// AverageDropParams are the parameters of [AverageDrop], which has none.
type AverageDropParams struct{}

// AverageDrop compares the probability of the image that is masked by its map with that of the image.
var AverageDrop = stages.New(stages.Def[AverageDropParams]{
	Name: "score/average-drop",
	Doc: `drop, increase and gain on the image masked by its map

Three readings of one forward pass: how much of the probability is lost on the image that
perturb/soft-mask leaves, whether it rises, and how much of what it lacks to 1 is won.
Their means over images are Average Drop and Average Increase of Chattopadhay, Sarkar,
Howlader and Balasubramanian, "Grad-CAM++", WACV 2018, and Average Gain of
Zhang, Torres, Sicre, Avrithis and Ayache, "Opti-CAM", 2024.`,
	Definition: stages.Definition{
		Formula: "drop max(0, p − p′)/p, increase 1 if p′ > p and else 0, gain max(0, p′ − p)/(1 − p), for " +
			"the probability p of x and p′ of m ⊙ x + (1 − m) ⊙ s; drop is 1 where a difference p′ is " +
			"negative",
		Unit:        "a pixel, in part",
		Operator:    "perturb/soft-mask: its substrate s and its values belong to the score",
		Response:    "probability of the target",
		Reference:   "the image itself",
		Aggregation: "none: one masked image",
		Randomness:  "none, except for the substrate random",
		Undefined: "for a map without a mask; drop where p is 0, or negative as the difference of two " +
			"classes may be; gain where p = 1",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs:   []stages.Port{maskedPort()},
	Outputs: []stages.Port{
		{Name: "drop", Type: stages.Scores, Doc: "the part of the probability that is lost"},
		{Name: "increase", Type: stages.Scores, Doc: "1 if the probability rises, otherwise 0"},
		{Name: "gain", Type: stages.Scores, Doc: "the part of what the probability lacks to 1 that is won"},
	},
	Variants: []stages.Variant{{
		Item: "drop", Default: "a part of the probability",
		Differs: "the paper has it in percent; DropInConfidence of pytorch-grad-cam doesn't divide by p, " +
			"so that images of which the model is unsure can't drop far; torch-cam scales a map before it " +
			"is resized, so that the mask's greatest value isn't 1",
		Golden: "masked_input",
	}},
	Facts: func(_ AverageDropParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := checkMasked(in); err != nil {
			return nil, err
		}
		share := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-3,
			ItemTolerance: orderJump}
		drop := share
		drop.Direction = stages.Lower
		return map[string]stages.Facts{"drop": drop.Facts(nil), "increase": share.Facts(nil),
			"gain": share.Facts(nil)}, nil
	},
	Run: func(_ context.Context, _ AverageDropParams, e *stages.Env) error {
		for i := range e.Len() {
			p, q, err := maskedProbabilities(e, i)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("drop", i, stages.Scalar(metric.Drop(p, q)))
			e.Put("increase", i, stages.Scalar(metric.Increase(p, q)))
			e.Put("gain", i, stages.Scalar(metric.Gain(p, q)))
			e.Done(1)
		}
		return nil
	},
})

// maskedPort returns the port of scores that read perturb/soft-mask.
func maskedPort() stages.Port {
	return stages.Port{Name: "masked", Type: stages.Curves,
		Doc: "the responses of perturb/soft-mask: to the image, and to the image masked by its map"}
}

// checkMasked rejects curves of another stage.
func checkMasked(in map[string]stages.Facts) error {
	if order := in["masked"]["order"]; order != "masked" {
		return fmt.Errorf("the input \"masked\" needs curves of "+
			"perturb/soft-mask, not of the order %q", order)
	}
	return nil
}

// maskedProbabilities returns the probabilities of image i and of its masked image.
func maskedProbabilities(e *stages.Env, i int) (whole, masked float64, err error) {
	curve, err := metric.Response(e.Facts("masked"), e.In("masked", i), "probability")
	if err != nil {
		return 0, 0, fmt.Errorf("port masked: %w", err)
	}
	return curve[0], curve[1], nil
}
