package score

import (
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
)

// LipschitzParams are the parameters of [Lipschitz].
type LipschitzParams struct {
	DrawParams
	Normalise string `yaml:"normalise" doc:"max-abs divides each map by its largest magnitude" choices:"max-abs|none"`
}

// officialDistance is what the official code adds to the distance of two images.
const officialDistance = 1e-10

// Lipschitz estimates the local Lipschitz constant of an attribution method (Alvarez-Melis and Jaakkola, "On
// the Robustness of Interpretability Methods", 2018), as equation 10 of Vukadin et al., 2024, over the draws
// that over collapses.
var Lipschitz = stages.New(stages.Def[LipschitzParams]{
	Name: "score/lipschitz",
	Doc: `change of maps with the image: local Lipschitz estimate

The largest change of the map, by the change of the image, over the draws that over
collapses; the measure names their number. The channels of a map are summed.
perturb/noise makes the draws, and their maps explain the original's class. 0 for a
constant map. Alvarez-Melis and Jaakkola, "On the Robustness of Interpretability
Methods", 2018, as equation 10 of Vukadin et al., 2024, has it.`,
	Definition: stages.Definition{
		Formula: "max over draws x′ of ‖a(x′) − a(x)‖₂ / ‖x′ − x‖₂, a divided by its largest " +
			"magnitude unless normalise is none, x in pixel values from 0 to 1",
		Unit: "an image",
		Operator: "noise on every value, of perturb/noise: its distribution and scale belong to the " +
			"score",
		Response:    "the method's map, of the original image's class",
		Reference:   "the map of the image, and the image",
		Aggregation: "the maximum over draws",
		Randomness:  "the draws, by the experiment's seed, the image and the draw's name",
		Undefined: "without draws, for a draw that equals the image (variant: official adds 1e-10 to " +
			"the distance), for a map of zeros unless normalise is none, and for a map with a value that " +
			"isn't finite",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "maps of the original images"},
		{Name: "draws", Type: stages.Maps, Doc: "maps of the draws", Over: true},
		{Name: "images", Type: stages.Images, Doc: "the original images"},
		{Name: "noisy", Type: stages.Images, Doc: "the draws", Over: true},
	},
	Outputs: []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the estimate, at least 0"}},
	Variants: []stages.Variant{{
		Item: "distance of images", Default: "variant: paper",
		Differs: "official adds 1e-10, so that a draw equal to the image has a score",
		Golden:  "lipschitz",
	}, {
		Item: "normalisation of maps", Default: "normalise: max-abs, map by map",
		Differs: "Quantus divides by the largest magnitude in a batch, on which its scores depend",
		Golden:  "lipschitz",
	}, {
		Item: "images", Default: "pixel values from 0 to 1",
		Differs: "Quantus measures the model's inputs: with a preset of standard deviation s its scores " +
			"are s times these; its draws are 200 of normal noise of 0.1",
	}},
	Defaults: LipschitzParams{DrawParams{Values: "signed", Variant: paper}, "max-abs"},
	Facts: func(p LipschitzParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Direction: stages.Lower, High: math.Inf(1), Tolerance: 5e-3,
			ItemTolerance: 5e-2, Variant: p.drawsVariant("max", in)}
		return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
	},
	Run: func(ctx context.Context, p LipschitzParams, e *stages.Env) error {
		for i := range e.Len() {
			x, err := p.estimate(ctx, e, i)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("scores", i, stages.Scalar(x))
			e.Done(1)
		}
		return nil
	},
})

// estimate returns the score of item i.
func (p LipschitzParams) estimate(ctx context.Context, e *stages.Env, i int) (float64, error) {
	a, err := p.values(e.In("maps", i))
	if err != nil {
		return 0, err
	}
	p.normalise(a)
	x, err := pixelsOf(e.In("images", i))
	if err != nil {
		return 0, err
	}
	most := math.Inf(-1)
	for m, err := range e.All(i, "draws", "noisy") {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, err
		}
		b, err := p.drawOf(m[0].Data, a)
		if err != nil {
			return 0, err
		}
		p.normalise(b)
		y, err := pixelsOf(m[1].Data)
		if err != nil {
			return 0, err
		}
		if len(x) != len(y) {
			return 0, fmt.Errorf("a draw of %d numbers, of an image of %d", len(y), len(x))
		}
		most = math.Max(most, p.ratio(a, b, x, y)) // NaN if one is
	}
	if math.IsInf(most, -1) {
		most = math.NaN()
	}
	return most, nil
}

// ratio returns how far two maps are apart, relative to their images.
func (p LipschitzParams) ratio(a, b, x, y []float64) float64 {
	d := euclidean(x, y)
	switch {
	case p.Variant == official:
		d += officialDistance
	case d == 0:
		return math.NaN()
	}
	return euclidean(a, b) / d
}

// normalise divides a map by its largest magnitude, a map of zeros by 0.
func (p LipschitzParams) normalise(a []float64) {
	if p.Normalise == "none" {
		return
	}
	most := 0.0
	for _, v := range a {
		most = math.Max(most, math.Abs(v))
	}
	for i := range a {
		a[i] /= most
	}
}
