package score

import (
	"context"
	"fmt"
	"math"

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

By the trapezoidal rule on [0,1]. Whether a large or a small area is better is a
property of the curves: small if relevant pixels are removed first, large if they are
removed last or inserted first.`,
	Version:  2,
	Relation: stages.Each,
	Inputs:   []stages.Port{{Name: "curves", Type: stages.Curves, Doc: "perturbation curves"}},
	Outputs:  []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the area of each curve"}},
	Defaults: AUCParams{Response: "probability"},
	Facts: func(p AUCParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Direction: stages.Direction(in["curves"]["direction"])}
		switch p.Response {
		case "probability":
			m.Unit, m.High, m.Tolerance, m.ItemTolerance = "probability", 1, 1e-3, orderJump
		case "top-1":
			// A prediction at the decision boundary moves one image's curve, and the mean by less.
			m.Unit, m.High, m.Tolerance, m.ItemTolerance = "share", 1, 1e-3, orderJump
		default:
			// The range of logits is about ten times that of probabilities.
			m.Unit, m.Low, m.High, m.Tolerance, m.ItemTolerance =
				"logit", math.Inf(-1), math.Inf(1), 1e-2, 10*orderJump
		}
		return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p AUCParams, e *stages.Env) error {
		name := p.Response
		if name == "top-1" {
			name = "correct"
		}
		for i := range e.Len() {
			curve, err := responseOf(e.Facts("curves"), e.In("curves", i), name)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("scores", i, stages.Scalar(metric.Area(curve)))
			e.Done(1)
		}
		return nil
	},
})
