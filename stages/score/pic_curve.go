package score

import (
	"context"
	"errors"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// PICCurveParams are the parameters of [PICCurve].
type PICCurveParams struct {
	Of string `yaml:"of" doc:"what is made of the images' curves at each point" choices:"median|mean"`
}

// PICCurve aggregates the curves of images, as the authors of PIC report them.
var PICCurve = stages.New(stages.Def[PICCurveParams]{
	Name: "score/pic-curve",
	Doc: `the information curve of all images, and its area

The median or the mean of the images' curves at each share of the information, over the
images whose curve is defined. With the mean its area is the mean of the areas; with the
median, which the authors report, it is another number, and has one value for all
images. Collapsed axes are pooled. Kapishnikov et al., ICCV 2019.`,
	Definition: stages.Definition{
		Formula: "the median, or the mean, over images of the curves of score/pic at each of 1001 " +
			"shares, and its area",
		Unit:      "a pixel",
		Operator:  "the shown pixels stay, the others are interpolated linearly between them",
		Response:  "the explained class's probability (sic), or whether the prediction is correct (aic)",
		Reference: "the start, which shows random pixels alone, and the image",
		Aggregation: "over the images whose curve is defined, then the area by the trapezoidal rule: one " +
			"score for all",
		Randomness: "none, besides the random pixels of the curves",
		Undefined:  "where no image has a curve",
	},
	Version:  1,
	Relation: stages.Whole,
	Inputs:   []stages.Port{{Name: "curves", Type: stages.Curves, Doc: "the curves of score/pic"}},
	Outputs: []stages.Port{
		{Name: "sic", Type: stages.Scores,
			Doc: "area under the curve of the probability, one for all images"},
		{Name: "aic", Type: stages.Scores, Doc: "area under the curve of correctness"},
		{Name: "curves", Type: stages.Curves, Doc: "both curves"},
	},
	Defaults: PICCurveParams{Of: "median"},
	Facts: func(p PICCurveParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if in["curves"]["responses"] != "sic,aic" {
			return nil, errors.New("the input \"curves\" needs the curves of score/pic")
		}
		m := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: orderJump,
			Variant: in["curves"]["variant"]}
		return map[string]stages.Facts{"sic": m.Facts(nil), "aic": m.Facts(nil), "curves": in["curves"]}, nil
	},
	Run: func(ctx context.Context, p PICCurveParams, e *stages.Env) error {
		images := 0
		for _, in := range e.Ports["curves"] {
			images += in.Items.Len()
		}
		aggregate := metric.Median
		if p.Of == "mean" {
			aggregate = metric.Average
		}
		var all []float64
		for _, name := range []string{"sic", "aic"} {
			curve, undefined, err := aggregated(ctx, e.Ports["curves"], images, name, aggregate)
			if err != nil {
				return err
			}
			if undefined > 0 {
				e.Warn("%s is undefined on %d of %d images, which are left out", name, undefined, images)
			}
			e.Emit(name, "all", "", stages.Scalar(metric.Area(curve)))
			all = append(all, curve...)
		}
		e.Emit("curves", "all", "", stages.NewTensor(all, 2, metric.InformationPoints).Encode())
		return nil
	},
})

// held is how many numbers of curves are in memory at once.
const held = 8 << 20

// aggregated returns one number for the images' curves at each point, and how many curves are undefined. It
// reads the curves several times if there are many.
func aggregated(ctx context.Context, cells []stages.Data, images int, name string,
	aggregate func([]float64) float64) (curve []float64, undefined int, err error) {
	block := max(1, held/max(1, images))
	for from := 0; from < metric.InformationPoints; from += block {
		values := make([][]float64, min(block, metric.InformationPoints-from))
		undefined = 0
		for _, in := range cells {
			for item, err := range in.All(ctx) {
				if err != nil {
					return nil, 0, err
				}
				one, err := metric.Response(in.Facts, item.Data, name)
				if err != nil {
					return nil, 0, err
				}
				if math.IsNaN(one[0]) {
					undefined++
					continue
				}
				for k := range values {
					values[k] = append(values[k], one[from+k])
				}
			}
		}
		for _, v := range values {
			curve = append(curve, aggregate(v))
		}
	}
	return curve, undefined, nil
}
