package score

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// AOPCParams are the parameters of [AOPC].
type AOPCParams struct {
	Response string `yaml:"response" doc:"the response along the curve: the class's probability or logit, or whether the prediction is correct" choices:"probability|logit|top-1"`
}

// AOPC is the area over the perturbation curve of Samek, Binder, Montavon, Lapuschkin and Müller, "Evaluating
// the Visualization of What a Deep Neural Network Has Learned", TNNLS 2017, equation 12.
var AOPC = stages.New(stages.Def[AOPCParams]{
	Name: "score/aopc",
	Doc: `area over the perturbation curve

The mean over all L+1 points of a curve, the first included, of how far the response has
fallen. Large is better if relevant pixels are removed first, small if they are removed
last. The number of points is that of the curve: areas over curves with other steps are
other scores. Samek et al., TNNLS 2017, equation 12.`,
	Definition: ofCurves(stages.Definition{
		Formula:     "1/(L+1)·Σₖ (f(x₀) − f(xₖ)), k = 0 … L",
		Reference:   "the response to the image, f(x₀)",
		Aggregation: "the mean over all points, the image itself included",
	}),
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{{Name: "curves", Type: stages.Curves,
		Doc: "curves that begin at the image: of perturb/ablation or perturb/deletion"}},
	Outputs:  []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the area over each curve"}},
	Defaults: AOPCParams{Response: "probability"},
	Facts: func(p AOPCParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := checkRemoval(in, "curves"); err != nil {
			return nil, err
		}
		m := difference(measureOf(p.Response, in["curves"]))
		m.Direction = opposite(stages.Direction(in["curves"]["direction"]))
		m.Variant = in["curves"]["variant"]
		return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p AOPCParams, e *stages.Env) error {
		for i := range e.Len() {
			curve, err := metric.Response(e.Facts("curves"), e.In("curves", i), responses[p.Response])
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("scores", i, stages.Scalar(metric.MeanDrop(curve)))
			e.Done(1)
		}
		return nil
	},
})
