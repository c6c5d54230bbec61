package score

import (
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// FocusParams are the parameters of [Focus].
type FocusParams struct {
	Variant string `yaml:"variant" doc:"paper: a map without positive relevance has no score; quantus: it scores 0, since 1e-9 of the largest magnitude is added to the total" choices:"paper|quantus"`
}

// Focus is the score of Arias-Duart, Parés, Garcia-Gasulla and Giménez-Ábalos, "Focus! Rating XAI Methods and
// Finding Biases", FUZZ-IEEE 2022, equation 1: the share of the positive relevance in a mosaic that lies in
// the quadrants of the explained class.
var Focus = stages.New(stages.Def[FocusParams]{
	Name: "score/focus",
	Doc: `share of the relevance on quadrants of the class

Positive relevance in the quadrants of the explained class divided by all positive
relevance of the mosaic, after summing channels and upsampling smaller maps to the
mosaic bilinearly. 1 is best; a constant map scores 1/2, which is the fact "baseline".
mosaic/focus makes the masks. Arias-Duart et al., FUZZ-IEEE 2022.`,
	Definition: stages.Definition{
		Formula:     "Σ over the quadrants of the class of a⁺ / Σ of a⁺",
		Unit:        "a pixel of the mosaic; smaller maps are enlarged bilinearly",
		Operator:    "none; the image is a mosaic of two images of the class and two others",
		Response:    "none besides the map",
		Reference:   "the quadrants of the explained class",
		Aggregation: "a quotient of sums over pixels",
		Randomness:  "none, besides that of the mosaics",
		Undefined: "for a map without positive relevance (variant: quantus has 0), and for one with a " +
			"value that isn't finite",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "attribution maps of mosaics"},
		{Name: "masks", Type: stages.Masks, Doc: "1 on the quadrants of the explained class"},
	},
	Outputs: []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the share, in [0,1]; fact: baseline"}},
	Variants: []stages.Variant{{
		Item: "maps without positive relevance", Default: "paper",
		Differs: "the paper's equation, and its authors' code, divide by zero, so the score is undefined; " +
			"Quantus scales maps by the largest magnitude of a batch, here of the map, adds 1e-9 to the " +
			"total, and gives 0",
		Golden: "focus",
	}},
	Defaults: FocusParams{Variant: paper},
	Facts: func(p FocusParams, _ map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-4,
			ItemTolerance: kinkJump, Variant: tag(p.Variant)}
		return map[string]stages.Facts{"scores": m.Facts(stages.Facts{"baseline": "0.5"})}, nil
	},
	Run: func(_ context.Context, p FocusParams, e *stages.Env) error {
		for i := range e.Len() {
			x, err := focus(p, e.In("maps", i), e.In("masks", i))
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("scores", i, stages.Scalar(x))
			e.Done(1)
		}
		return nil
	},
})

func focus(p FocusParams, mapPayload, maskPayload []byte) (float64, error) {
	m, err := stages.DecodeTensor(maskPayload)
	if err != nil {
		return 0, err
	}
	if len(m.Shape) != 2 {
		return 0, fmt.Errorf("a mask of shape %v isn't [height, width]", m.Shape)
	}
	height, width := m.Shape[0], m.Shape[1]
	mask, err := maskOf(maskPayload, height, width)
	if err != nil {
		return 0, err
	}
	values, err := metric.Enlarged(mapPayload, height, width)
	if err != nil {
		return 0, err
	}
	largest := 0.0
	for _, v := range values {
		largest = math.Max(largest, math.Abs(v))
	}
	values, mask = metric.Counted(values, mask)
	total := metric.KeepPositive(values)
	share := metric.MassAccuracy(values, mask)
	switch {
	case p.Variant == paper || math.IsNaN(total) || math.IsInf(total, 0):
		return share, nil
	case total == 0:
		return 0, nil
	}
	return share * (total / (total + 1e-9*largest)), nil
}
