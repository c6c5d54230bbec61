package score

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// AUCParams are the parameters of [AUC].
type AUCParams struct {
	Response string `yaml:"response" doc:"the response along the curve: the class's probability or logit, or whether the prediction is correct" choices:"probability|logit|top-1"`
}

// AUC is the area under perturbation curves.
var AUC = stages.New(stages.Def[AUCParams]{
	Name: "score/auc",
	Doc: `area under a perturbation curve

By the trapezoidal rule, over the share of pixels that are replaced, and divided by the
range of shares that the curve covers: the mean height of the curve. Whether a large or
a small area is better is a property of the curves: small if relevant pixels are
removed first, large if they are removed last or inserted first.`,
	Definition: ofCurves(stages.Definition{
		Formula:     "∫ f dq / (q_L − q₀) over the share q of replaced units, by the trapezoidal rule",
		Reference:   "none",
		Aggregation: "the area over the range of shares: the curve's mean height",
	}),
	Version:  2,
	Relation: stages.Each,
	Inputs:   []stages.Port{{Name: "curves", Type: stages.Curves, Doc: "perturbation curves"}},
	Outputs:  []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the area of each curve"}},
	Defaults: AUCParams{Response: "probability"},
	Facts: func(p AUCParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := measureOf(p.Response, in["curves"])
		m.Direction = stages.Direction(in["curves"]["direction"])
		m.Variant = in["curves"]["variant"]
		return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p AUCParams, e *stages.Env) error {
		for i := range e.Len() {
			area, err := area(p, e.Facts("curves"), e.In("curves", i))
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("scores", i, stages.Scalar(area))
			e.Done(1)
		}
		return nil
	},
})

func area(p AUCParams, facts stages.Facts, payload []byte) (float64, error) {
	curve, err := metric.Response(facts, payload, responses[p.Response])
	if err != nil || facts["shares"] == "" {
		return metric.Area(curve), err // of steps of one size
	}
	shares, err := metric.Shares(facts, len(curve))
	if err != nil {
		return 0, err
	}
	return metric.AreaOver(curve, shares), nil
}
