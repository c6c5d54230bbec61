package score

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// ABPCParams are the parameters of [ABPC].
type ABPCParams struct {
	Response string `yaml:"response" doc:"the response along the curves: the class's probability or logit, or whether the prediction is correct" choices:"probability|logit|top-1"`
}

// ABPC is the area between perturbation curves of Samek, Binder, Montavon, Lapuschkin and Müller, "Evaluating
// the Visualization of What a Deep Neural Network Has Learned", TNNLS 2017.
var ABPC = stages.New(stages.Def[ABPCParams]{
	Name: "score/abpc",
	Doc: `area between the perturbation curves

The mean over all L+1 points of how far the curve that removes the least relevant pixels
first runs above the one that removes the most relevant ones first. A map that says
nothing about the order scores about 0. Samek et al., TNNLS 2017.`,
	Definition: ofCurves(stages.Definition{
		Formula:     "1/(L+1)·Σₖ (f(xₖ by LeRF) − f(xₖ by MoRF)), k = 0 … L",
		Reference:   "the curve of the opposite order",
		Aggregation: "the mean over all points, the image itself included",
	}),
	Version:  1,
	Relation: stages.Each,
	Inputs:   morfLerf(),
	Outputs:  []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the area between the curves"}},
	Defaults: ABPCParams{Response: "probability"},
	Facts: func(p ABPCParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := checkMorfLerf(in); err != nil {
			return nil, err
		}
		m := difference(measureOf(p.Response, in["morf"]))
		m.Direction = stages.Higher
		m.Variant = in["lerf"]["variant"]
		return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p ABPCParams, e *stages.Env) error {
		for i := range e.Len() {
			morf, lerf, err := bothCurves(e, i, p.Response)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("scores", i, stages.Scalar(metric.MeanDistance(lerf, morf)))
			e.Done(1)
		}
		return nil
	},
})
