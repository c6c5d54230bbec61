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

// PICParams are the parameters of [PIC].
type PICParams struct {
	Filters    bool    `yaml:"filters" doc:"leave out images where the curve has no meaning, as the authors' code does: their response is less than confidence, or no larger than that of the start, or their form no longer; otherwise only where an end divides by zero"`
	Confidence float64 `yaml:"confidence" doc:"filters: the least response to the image" min:"0" max:"1"`
	Variant    string  `yaml:"variant" doc:"AIC between the correctness of start and image (paper), or between their probabilities (official, the code of MAS); as of the curves" choices:"paper|official"`
}

// PIC is the area under performance information curves, after Kapishnikov, Bolukbasi, Viégas and Terry,
// "XRAI: Better Attributions Through Regions", ICCV 2019.
var PIC = stages.New(stages.Def[PICParams]{
	Name: "score/pic",
	Doc: `areas under performance information curves: SIC and AIC

The response while the most relevant pixels are shown, over the information in the
image: the size of its compressed form. Both are normalised so that the start is 0 and
the whole image 1. SIC takes the class's probability as response, AIC whether the
prediction is correct. Larger is better; a constant map, all of whose pixels are shown
at once, has the area ½. Kapishnikov et al., ICCV 2019.`,
	Definition: stages.Definition{
		Formula: "area of g(h): h is an image's size in bytes, g its response, both scaled so that " +
			"the start has 0 and the image 1; g is made monotone",
		Unit:        "a pixel",
		Operator:    "the shown pixels stay, the others are interpolated linearly between them",
		Response:    "the explained class's probability (sic), or whether the prediction is correct (aic)",
		Reference:   "the start, which shows random pixels alone, and the image",
		Aggregation: "the area at 1001 shares of the information, by the trapezoidal rule",
		Randomness:  "none, besides the random pixels of the curves",
		Undefined: "with filters, where the response to the image is less than confidence, or the start " +
			"has a response or a size as large as the image's; without, where both ends have one size, " +
			"or, unless variant is official, one response; and where the curve is",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "curves", Type: stages.Curves, Doc: "curves of perturb/pic"},
		{Name: "lengths", Type: stages.Curves, Doc: "the lengths of their images' compressed forms"},
	},
	Outputs: []stages.Port{
		{Name: "sic", Type: stages.Scores, Doc: "area under the curve of the probability"},
		{Name: "aic", Type: stages.Scores, Doc: "area under the curve of correctness"},
		{Name: "curves", Type: stages.Curves, Doc: "both curves, at 1001 shares of the information"},
	},
	Defaults: PICParams{Filters: true, Confidence: 0.8, Variant: paper},
	Variants: []stages.Variant{{
		Item: "images that are left out", Default: "filters: true, confidence: 0.8",
		Differs: "the code of MAS scores all images (filters: false), also where the start is longer or " +
			"more probable than the image",
		Golden: "pic",
	}, {
		Item: "ends of the accuracy curve", Default: paper,
		Differs: "official: the code of MAS normalises correctness with the probabilities of start and " +
			"image",
		Golden: "pic",
	}},
	Facts: func(p PICParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if order := in["curves"]["order"]; order != "information" {
			return nil, fmt.Errorf("the input \"curves\" needs curves of perturb/pic, not of the order %q",
				order)
		}
		if text := in["curves"][program.TargetFact]; text != "" {
			return nil, fmt.Errorf("the input \"curves\" needs curves of a class, whose predictions are "+
				"right or wrong, and these are of the expression %s: score/auc takes curves of "+
				"perturb/insertion, of its value", text)
		}
		if made := in["curves"]["variant"]; made != tag(p.Variant) {
			return nil, stages.BadField("variant", "variant is %s, but the curves were made with variant: %s",
				p.Variant, made)
		}
		m := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-3,
			ItemTolerance: orderJump, Variant: tag(p.Variant)}
		return map[string]stages.Facts{"sic": m.Facts(nil), "aic": m.Facts(nil), "curves": {
			"responses": "sic,aic", "order": "information", "direction": string(stages.Higher),
			"variant": m.Variant,
		}}, nil
	},
	Run: func(_ context.Context, p PICParams, e *stages.Env) error {
		for i := range e.Len() {
			lengths, err := metric.Response(e.Facts("lengths"), e.In("lengths", i), "bytes")
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			var both []float64
			ends := [2]float64{}
			for k, name := range []string{"probability", "correct"} {
				response, err := metric.Response(e.Facts("curves"), e.In("curves", i), name)
				if err == nil && len(response) != len(lengths) {
					err = fmt.Errorf("a curve of %d points doesn't match %d lengths", len(response),
						len(lengths))
				}
				if err != nil {
					return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
				}
				if k == 0 || p.Variant == paper {
					ends = [2]float64{response[0], response[len(response)-1]}
				}
				curve, reason := p.curve(lengths, response, ends)
				if reason != "" {
					e.WarnItem(i, "%s is undefined: "+reason, []string{"SIC", "AIC"}[k])
				}
				e.Put([]string{"sic", "aic"}[k], i, stages.Scalar(metric.Area(curve)))
				both = append(both, curve...)
			}
			e.Put("curves", i, stages.NewTensor(both, 2, metric.InformationPoints).Encode())
			e.Done(1)
		}
		return nil
	},
})

// curve returns an information curve of the responses to images from the start to the original, or NaNs and
// the reason why it's undefined. ends are the responses that become 0 and 1.
func (p PICParams) curve(lengths, response []float64, ends [2]float64) (curve []float64, reason string) {
	last := len(lengths) - 1
	start, end := ends[0], ends[1]
	switch {
	case slices.ContainsFunc(response, math.IsNaN):
		reason = "its map has pixels that are not numbers, or no order"
	case p.Filters && end < p.Confidence:
		reason = "the response to the image is less than confidence"
	case p.Filters && lengths[0] >= lengths[last]:
		reason = "the form of the start is as long as that of the image"
	case p.Filters && start >= end:
		reason = "the response to the start is as large as that to the image"
	case lengths[0] == lengths[last]:
		reason = "the forms of start and image are of one length"
	case p.Variant == paper && start == end:
		reason = "the responses to start and image are equal"
	}
	if reason != "" {
		return slices.Repeat([]float64{math.NaN()}, metric.InformationPoints), reason
	}
	return metric.InformationCurve(metric.Normalised(lengths[1:last], lengths[0], lengths[last]),
		metric.Normalised(response[1:last], start, end)), ""
}
