package score

import (
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// ContinuityParams are the parameters of [Continuity].
type ContinuityParams struct {
	Draw   string `yaml:"draw" doc:"the axis of the altered images" axis:"draws"`
	Values string `yaml:"values" doc:"a pixel's relevance: the sum over channels, or its magnitude" choices:"signed|magnitude"`
}

// Continuity is the strongest variation of Montavon, Samek and Müller, "Methods for Interpreting and
// Understanding Deep Neural Networks", Digital Signal Processing 2018.
var Continuity = stages.New(stages.Def[ContinuityParams]{
	Name: "score/continuity",
	Doc: `strongest variation of the map as the image moves

The largest ‖a(x′) − a(x)‖₁ / ‖x′ − x‖₂ over the altered images x′ that over collapses, such
as those of perturb/translate. Maps aren't normalised: their scale is that of the method,
so that only maps of one output and of one kind compare. Images are in pixel
values from 0 to 1. Montavon, Samek and Müller, "Methods for Interpreting and
Understanding Deep Neural Networks", 2018.`,
	Definition: stages.Definition{
		Formula:     "max over x′ of ‖a(x′) − a(x)‖₁ / ‖x′ − x‖₂, x in pixel values from 0 to 1",
		Unit:        "an image",
		Operator:    "perturb/translate, or any other: its distances belong to the score",
		Response:    "the method's map, of the original image's class",
		Reference:   "the map of the image, and the image",
		Aggregation: "the maximum over altered images",
		Randomness:  "none, except for the method's own",
		Undefined: "without altered images, for one that equals the image, and for a map with a value that " +
			"isn't finite",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "maps of the original images"},
		{Name: "draws", Type: stages.Maps, Doc: "maps of the altered images", Over: true},
		{Name: "images", Type: stages.Images, Doc: "the original images"},
		{Name: "altered", Type: stages.Images, Doc: "the altered images", Over: true},
	},
	Outputs: []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the strongest variation, at least 0"}},
	Variants: []stages.Variant{{
		Item: "maps and images", Default: "maps as they are, pixel values from 0 to 1",
		Differs: "Quantus divides maps by the largest magnitude in a batch and takes magnitudes by " +
			"default, measures the model's inputs, and adds 1e-9 to the distance; its black is an image's " +
			"least value",
		Golden: "axioms",
	}},
	Defaults: ContinuityParams{Values: metric.Signed},
	Facts: func(_ ContinuityParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Direction: stages.Lower, High: math.Inf(1), Tolerance: 5e-3, ItemTolerance: 5e-2,
			Variant: fmt.Sprintf("max of %s images", in["draws"]["cells"])}
		return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
	},
	Run: func(ctx context.Context, p ContinuityParams, e *stages.Env) error {
		for i := range e.Len() {
			x, err := p.variation(ctx, e, i)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("scores", i, stages.Scalar(x))
			e.Done(1)
		}
		return nil
	},
})

// variation returns the strongest variation of item i's map.
func (p ContinuityParams) variation(ctx context.Context, e *stages.Env, i int) (float64, error) {
	d := DrawParams{Values: p.Values}
	a, err := d.values(e.In("maps", i))
	if err != nil {
		return 0, err
	}
	x, err := pixelsOf(e.In("images", i))
	if err != nil {
		return 0, err
	}
	most, n := math.Inf(-1), 0
	for m, err := range e.All(i, "draws", "altered") {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, err
		}
		b, err := d.drawOf(m[0].Data, a)
		if err != nil {
			return 0, err
		}
		y, err := pixelsOf(m[1].Data)
		if err != nil {
			return 0, err
		}
		if len(x) != len(y) {
			return 0, fmt.Errorf("an altered image of %d numbers, of an image of %d", len(y), len(x))
		}
		distance := euclidean(x, y)
		if distance == 0 || !metric.Defined(a) || !metric.Defined(b) {
			distance = math.NaN()
		}
		sum := 0.0
		for k, v := range a {
			sum += math.Abs(v - b[k])
		}
		most, n = math.Max(most, sum/distance), n+1 // NaN if one is
	}
	if n == 0 {
		return math.NaN(), nil
	}
	return most, nil
}
