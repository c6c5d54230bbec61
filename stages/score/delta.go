package score

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// DeltaParams are the parameters of [Delta].
type DeltaParams struct {
	Share    float64 `yaml:"share" doc:"the share of the pixels that are removed, one of those of the curves" min:"0" max:"1"`
	Response string  `yaml:"response" doc:"what falls: whether the prediction is correct, or the class's probability or logit" choices:"top-1|probability|logit"`
}

// Delta is the drop Δ = acc(x) − acc(x_t) of Duan et al., "On the Evaluation Consistency of Attribution-based
// Explanations" (Meta-Rank), ECCV 2024, equation 3.
var Delta = stages.New(stages.Def[DeltaParams]{
	Name: "score/delta",
	Doc: `drop of the accuracy when a share of pixels is removed

The response to the image minus that to the image without a share of its pixels: with
response: top-1 the mean over images is the accuracy before minus the accuracy after,
for the class that the curves take as correct: wire labels to the stage that makes them
for the original label. Large is better if relevant pixels are removed first, small if
they are removed last. Duan et al. (Meta-Rank), ECCV 2024, equation 3.`,
	Definition: ofCurves(stages.Definition{
		Formula:     "f(x) − f(x without a share of its units)",
		Reference:   "the response to the image",
		Aggregation: "one point of the curve",
	}),
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{{Name: "curves", Type: stages.Curves,
		Doc: "curves that begin at the image: of perturb/ablation or perturb/deletion"}},
	Outputs:  []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the drop at the share"}},
	Defaults: DeltaParams{Share: 0.5, Response: "top-1"},
	Facts: func(p DeltaParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := checkRemoval(in, "curves"); err != nil {
			return nil, err
		}
		if listed := in["curves"]["shares"]; listed != "" {
			shares, err := metric.Shares(in["curves"], strings.Count(listed, ",")+1)
			if err == nil {
				_, err = p.point(shares)
			}
			if err != nil {
				return nil, err
			}
		}
		m := difference(measureOf(p.Response, in["curves"]))
		m.Direction = opposite(stages.Direction(in["curves"]["direction"]))
		m.Variant = in["curves"]["variant"]
		return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p DeltaParams, e *stages.Env) error {
		for i := range e.Len() {
			curve, err := metric.Response(e.Facts("curves"), e.In("curves", i), responses[p.Response])
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			shares, err := metric.Shares(e.Facts("curves"), len(curve))
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			k, err := p.point(shares)
			if err != nil {
				return err
			}
			e.Put("scores", i, stages.Scalar(curve[0]-curve[k]))
			e.Done(1)
		}
		return nil
	},
})

// point returns the point of a curve whose share is the one asked for.
func (p DeltaParams) point(shares []float64) (int, error) {
	if shares[0] != 0 {
		return 0, fmt.Errorf("the curves begin at a share of %v, not at the image: give them the share 0",
			shares[0])
	}
	var known []string
	for k, s := range shares {
		if math.Abs(s-p.Share) < 1e-9 {
			return k, nil
		}
		known = append(known, strconv.FormatFloat(s, 'g', 6, 64))
	}
	return 0, stages.BadField("share", "share is %v, and the curves have the shares %s", p.Share,
		strings.Join(known, ", "))
}
