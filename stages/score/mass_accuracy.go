package score

import (
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// MassAccuracyParams are the parameters of [MassAccuracy].
type MassAccuracyParams struct {
	Values string `yaml:"values" doc:"the relevance that counts, after summing channels: its positive part, or its magnitude" choices:"positive|magnitude"`
}

// kinkJump is the item tolerance of shares of relevance: on another processor rounding may put a ReLU on the
// other side of its kink.
const kinkJump = 5e-3

// MassAccuracy is the share of relevance on the object, the relevance mass accuracy of Arras, Osman and
// Samek, "CLEVR-XAI: A benchmark dataset for the ground truth evaluation of neural network explanations",
// Information Fusion 2022.
var MassAccuracy = stages.New(stages.Def[MassAccuracyParams]{
	Name: "score/mass-accuracy",
	Doc: `share of the relevance on the object

Relevance inside the mask divided by all relevance: 1 if all of it is on the object, the
object's share of the image for a constant map. Pixels that the mask ignores are left
out. Arras et al., Information Fusion 2022.`,
	Definition: located(stages.Definition{
		Formula:     "Σ over the object of a⁺ / Σ of a⁺, or of |a|",
		Reference:   "the object's mask",
		Aggregation: "a quotient of sums over pixels",
	}),
	Version:  3,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "attribution maps"},
		{Name: "masks", Type: stages.Masks, Doc: "1 on the object"},
	},
	Outputs:  []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the share, in [0,1]"}},
	Defaults: MassAccuracyParams{Values: metric.Positive},
	Facts: func(MassAccuracyParams, map[string]stages.Facts) (map[string]stages.Facts, error) {
		// The float32 noise of a map averages out over its pixels.
		m := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-4,
			ItemTolerance: kinkJump}
		return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p MassAccuracyParams, e *stages.Env) error {
		for i := range e.Len() {
			x, err := massAccuracy(p, e.In("maps", i), e.In("masks", i))
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("scores", i, stages.Scalar(x))
			e.Done(1)
		}
		return nil
	},
})

func massAccuracy(p MassAccuracyParams, mapPayload, maskPayload []byte) (float64, error) {
	t, err := stages.DecodeTensor(mapPayload)
	if err != nil {
		return 0, err
	}
	values, height, width, err := metric.Values(t, p.Values)
	if err != nil {
		return 0, err
	}
	mask, err := maskOf(maskPayload, height, width)
	if err != nil {
		return 0, err
	}
	counted, mask := metric.Counted(values, mask)
	if !metric.Decides(mask) || !metric.Defined(values) {
		return math.NaN(), nil
	}
	return metric.MassAccuracy(counted, mask), nil
}
