package score

import (
	"context"
	"errors"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// ROADParams are the parameters of [ROAD].
type ROADParams struct {
	Response string `yaml:"response" doc:"the response along the curves: whether the prediction is correct, or the class's probability or logit" choices:"top-1|probability|logit"`
}

// ROAD is the score of Rong, Leemann, Borisov, Kasneci and Kasneci, "A Consistent and Efficient Evaluation
// Strategy for Attribution Methods", ICML 2022: the response to images whose pixels are removed and debiased.
var ROAD = stages.New(stages.Def[ROADParams]{
	Name: "score/road",
	Doc: `remove and debias: the response after removal

The mean response over the shares of pixels that curves of perturb/road remove, the
original image (a share of 0) excluded: the mean over images is the accuracy that the
paper plots, for response: top-1, averaged over its shares. morf is better when small,
lerf when large; combined is half the difference of the two, as in pytorch-grad-cam.
Rong et al., ICML 2022.`,
	Definition: stages.Definition{
		Formula: "morf and lerf: 1/K·Σₖ f(xₖ) over the K shares that are removed; combined = (lerf − " +
			"morf)/2",
		Unit:        "a pixel",
		Operator:    "that of the curves: noisy linear imputation",
		Response:    "whether the prediction is correct, or by response the class's probability or logit",
		Reference:   "the opposite order, for combined",
		Aggregation: "the mean over shares, without the image itself",
		Randomness:  "none, besides the noise of the curves",
		Undefined:   "where a curve is: the map has no order",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs:   morfLerf(),
	Outputs: []stages.Port{
		{Name: "combined", Type: stages.Scores, Doc: "(lerf − morf)/2"},
		{Name: "morf", Type: stages.Scores, Doc: "the mean while the most relevant pixels are removed"},
		{Name: "lerf", Type: stages.Scores, Doc: "the mean while the least relevant pixels are removed"},
	},
	Variants: []stages.Variant{{
		Item: "one number of both orders", Default: "port morf and port lerf",
		Differs: "the paper compares the two orders and has no such number; ROADCombined of " +
			"pytorch-grad-cam is the port combined with response: probability",
		Golden: "road",
	}},
	Defaults: ROADParams{Response: "top-1"},
	Facts: func(p ROADParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := checkImputed(in); err != nil {
			return nil, err
		}
		morf, lerf := measureOf(p.Response, in["morf"]), measureOf(p.Response, in["morf"])
		lerf.Variant = in["lerf"]["variant"]
		combined := lerf
		morf.Direction, lerf.Direction, combined.Direction = stages.Lower, stages.Higher, stages.Higher
		combined.Low, combined.High = (morf.Low-morf.High)/2, (morf.High-morf.Low)/2
		return map[string]stages.Facts{"combined": combined.Facts(nil), "morf": morf.Facts(nil),
			"lerf": lerf.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p ROADParams, e *stages.Env) error {
		for i := range e.Len() {
			morf, lerf, err := road(p, e, i)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("combined", i, stages.Scalar((lerf-morf)/2))
			e.Put("morf", i, stages.Scalar(morf))
			e.Put("lerf", i, stages.Scalar(lerf))
			e.Done(1)
		}
		return nil
	},
})

// checkImputed rejects curves that aren't of perturb/road.
func checkImputed(in map[string]stages.Facts) error {
	if err := checkMorfLerf(in); err != nil {
		return err
	}
	for _, port := range []string{"morf", "lerf"} {
		if in[port]["imputation"] == "" {
			return fmt.Errorf("the input %q needs curves of perturb/road: of others, whose removed "+
				"pixels show the shape of what was removed, score/auc and score/abpc are scores", port)
		}
	}
	return nil
}

// road returns the mean responses of item i after removal.
func road(p ROADParams, e *stages.Env, i int) (morf, lerf float64, err error) {
	m, l, err := bothCurves(e, i, p.Response)
	if err != nil {
		return 0, 0, err
	}
	shares, err := metric.Shares(e.Facts("morf"), len(m))
	if err != nil {
		return 0, 0, err
	}
	from := 0
	for from < len(shares) && shares[from] == 0 {
		from++
	}
	if from == len(shares) {
		return 0, 0, errors.New("the curves remove no pixels")
	}
	return metric.Average(m[from:]), metric.Average(l[from:]), nil
}
