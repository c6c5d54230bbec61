package score

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/program"
)

// RISEParams are the parameters of [RISE].
type RISEParams struct {
	Variant string `yaml:"variant" doc:"the area under the raw curve (paper), or under the monotone, normalised one that the MAS authors report as RISE (official)" choices:"paper|official"`
}

// RISE scores maps by insertion and deletion, after Petsiuk, Das and Saenko, "RISE: Randomized Input Sampling
// for Explanation of Black-box Models", BMVC 2018.
var RISE = stages.New(stages.Def[RISEParams]{
	Name: "score/rise",
	Doc: `insertion and deletion scores

The area under the curve of the class's probability while the most relevant pixels
are inserted into a blurred image (insertion, larger is better) or deleted from the
image (deletion, smaller is better), and the difference of the two.
Petsiuk et al., BMVC 2018.`,
	Definition: stages.Definition{
		Formula: "insertion: ∫ f dq while the most relevant units enter the substrate; deletion: ∫ f " +
			"dq while they leave the image; difference = insertion − deletion",
		Unit:        "that of the curves: a pixel, a region or a segment",
		Operator:    "that of the curves: replacement by a substrate",
		Response:    "the explained class's probability",
		Reference:   "none; with variant: official the substrate's and the image's response become 0 and 1",
		Aggregation: "areas by the trapezoidal rule, steps taken as equal",
		Randomness:  "none, besides that of the curves",
		Undefined:   "where a curve is: the map has no order",
	},
	Version:  2,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "insertion", Type: stages.Curves, Doc: "curves of perturb/insertion"},
		{Name: "deletion", Type: stages.Curves, Doc: "curves of perturb/deletion"},
	},
	Outputs: []stages.Port{
		{Name: "insertion", Type: stages.Scores, Doc: "area under the insertion curve"},
		{Name: "deletion", Type: stages.Scores, Doc: "area under the deletion curve"},
		{Name: "difference", Type: stages.Scores, Doc: "insertion minus deletion"},
	},
	Defaults: RISEParams{Variant: paper},
	Variants: []stages.Variant{{
		Item:    "the curve whose area is taken",
		Default: paper,
		Differs: "official: the area of the curve that MASMetric normalises to [0,1], clips and makes " +
			"monotone, which the MAS paper's tables call RISE; where image and substrate score the same it " +
			"is 0 for insertion and 1 for deletion",
		Golden: "mas_rise",
	}},
	Facts: func(p RISEParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Unit: "probability", Tolerance: 1e-3, ItemTolerance: orderJump}
		if in["insertion"][program.TargetFact] != "" {
			m = measureOfValue(in["insertion"])
		}
		if p.Variant == official {
			// The normalisation divides by a difference of probabilities.
			m = stages.Measure{Unit: "share", Tolerance: 1e-3, ItemTolerance: orderJump, Variant: official}
		}
		return threeScores(m, in)
	},
	Run: func(_ context.Context, p RISEParams, e *stages.Env) error {
		for i := range e.Len() {
			var area [2]float64
			for _, protocol := range []metric.Protocol{metric.Insertion, metric.Deletion} {
				port := protocol.String()
				curve, err := metric.Response(e.Facts(port), e.In(port, i), "probability")
				if err != nil {
					return fmt.Errorf("item %q: %s: %w", e.Calls[i].ID, port, err)
				}
				// The authors' code skips NaN and would give a number even for a curve of NaNs.
				if p.Variant == official && slices.ContainsFunc(curve, isNumber) {
					curve, _ = metric.MonotoneOf(curve, protocol)
				}
				area[protocol] = metric.Area(curve)
			}
			putThree(e, i, area)
		}
		return nil
	},
})

// orderJump is the item tolerance of areas under perturbation curves: on another processor pixels of nearly
// equal relevance change places, with small occlusion windows whole windows of pixels. Means move by far
// less.
const orderJump = 0.02

// threeScores returns the facts of the ports insertion, deletion and difference, for areas in [0,1].
func threeScores(m stages.Measure, in map[string]stages.Facts) (map[string]stages.Facts, error) {
	if err := checkOrder(in, "insertion", metric.Insertion); err != nil {
		return nil, err
	}
	if err := checkOrder(in, "deletion", metric.Deletion); err != nil {
		return nil, err
	}
	insertion, deletion, difference := m, m, m
	insertion.High, insertion.Direction = 1, stages.Higher
	deletion.High, deletion.Direction = 1, stages.Lower
	difference.Low, difference.High, difference.Direction = -1, 1, stages.Higher
	difference.Tolerance *= 2
	difference.ItemTolerance *= 2
	return map[string]stages.Facts{
		"insertion": insertion.Facts(nil), "deletion": deletion.Facts(nil),
		"difference": difference.Facts(nil),
	}, nil
}

func isNumber(x float64) bool { return !math.IsNaN(x) }

func putThree(e *stages.Env, i int, area [2]float64) {
	insertion, deletion := area[metric.Insertion], area[metric.Deletion]
	e.Put("insertion", i, stages.Scalar(insertion))
	e.Put("deletion", i, stages.Scalar(deletion))
	e.Put("difference", i, stages.Scalar(insertion-deletion))
	e.Done(1)
}
