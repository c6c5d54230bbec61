package score

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// IROFParams are the parameters of [IROF].
type IROFParams struct {
	Response string `yaml:"response" doc:"the response along the curve: the class's probability or logit, or whether the prediction is correct" choices:"probability|logit|top-1"`
}

// IROF is the iterative removal of features: the area over the curve of a response that is divided by the
// response to the image.
var IROF = stages.New(stages.Def[IROFParams]{
	Name: "score/irof",
	Doc: `IROF: the relative drop while segments are removed

The mean over all L+1 points of a curve of the share of the response to the image that is
lost. The segments are removed in the order of the map's mean over them, and replaced by
the image's mean colour: perturb/ablation with unit: segment, substrate: channel-mean and
values: signed, on segments/slic. The points are those of its steps, equal shares of the
image's segments. The paper removes them one by one: give at least as many steps as images
have segments. With fewer a point removes several at once; with more some points are
equal, which takes no further passes. Rieger and Hansen, "IROF: A Low Resource Evaluation
Metric for Explanation Methods", ICLR workshop 2020.`,
	Definition: irofDefinition(),
	Version:    1,
	Relation:   stages.Each,
	Inputs: []stages.Port{{Name: "curves", Type: stages.Curves,
		Doc: "curves that remove segments: of perturb/ablation with unit: segment"}},
	Outputs:  []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the mean relative drop"}},
	Defaults: IROFParams{Response: "probability"},
	Facts: func(p IROFParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := checkRemoval(in, "curves"); err != nil {
			return nil, err
		}
		if unit := in["curves"]["unit"]; unit != "segment" {
			return nil, errors.New("the input \"curves\" needs curves that remove segments: give their " +
				"stage unit: segment")
		}
		m := stages.Measure{Unit: "share of the response", Low: math.Inf(-1), High: 1,
			Direction: opposite(stages.Direction(in["curves"]["direction"])),
			Variant:   in["curves"]["variant"], Tolerance: 2e-3, ItemTolerance: 2 * orderJump}
		if p.Response == "logit" { // which may fall below 0
			m.High = math.Inf(1)
		}
		return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p IROFParams, e *stages.Env) error {
		for i := range e.Len() {
			curve, err := metric.Response(e.Facts("curves"), e.In("curves", i), responses[p.Response])
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("scores", i, stages.Scalar(relativeDrop(curve)))
			e.Done(1)
		}
		return nil
	},
})

func irofDefinition() stages.Definition {
	d := ofCurves(stages.Definition{
		Formula:     "1/(L+1)·Σₖ (1 − f(xₖ)/f(x₀)), k = 0 … L, L the steps of the curve",
		Reference:   "the response to the image, f(x₀)",
		Aggregation: "the mean over all points, the image itself included",
	})
	d.Unit = "a segment"
	d.Undefined += ", or the response to the image isn't positive"
	return d
}

// relativeDrop returns 1/(L+1) Σ_k (1 − curve_k/curve_0), NaN if the curve doesn't begin above 0.
func relativeDrop(curve []float64) float64 {
	if !(curve[0] > 0) {
		return math.NaN()
	}
	return metric.MeanDrop(curve) / curve[0]
}
