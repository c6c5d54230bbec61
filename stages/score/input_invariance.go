package score

import (
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// InputInvarianceParams are the parameters of [InputInvariance].
type InputInvarianceParams struct {
	Within float64 `yaml:"within" doc:"two maps are equal if no pixel differs by more than this share of the largest magnitude" min:"0" max:"1"`
}

// InputInvariance is the axiom of Kindermans et al., "The (Un)reliability of Saliency Methods", 2017.
var InputInvariance = stages.New(stages.Def[InputInvarianceParams]{
	Name: "score/input-invariance",
	Doc: `change of maps when image and model are shifted alike

A constant added to the image, and taken away again by the model, changes nothing that
the model computes: the map should stay. perturb/shift makes the images, and model/shift
the model. Gradients pass; whatever compares the image with a fixed point, such as input
times gradient, or integrated gradients from zero or black, fails. Kindermans et al.,
"The (Un)reliability of Saliency Methods", 2017.`,
	Definition: stages.Definition{
		Formula: "change ‖a(x + c; f′) − a(x; f)‖₂ / ‖a(x; f)‖₂, f′(x) = f(x − c); invariant 1 if no pixel " +
			"differs by more than within times the largest |a|, and else 0",
		Unit:        "a pixel",
		Operator:    "a constant c on every value, perturb/shift and model/shift: c belongs to the score",
		Response:    "the method's map, of the same class",
		Reference:   "the map of the image",
		Aggregation: "the Euclidean norm over pixels",
		Randomness:  "none, except for the method's own",
		Undefined:   "for a map of zeros, and where either has a value that isn't finite",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "maps of the images, by the model"},
		{Name: "shifted", Type: stages.Maps, Doc: "maps of the shifted images, by the shifted model"},
	},
	Outputs: []stages.Port{
		{Name: "change", Type: stages.Scores, Doc: "how far the map moves, at least 0"},
		{Name: "invariant", Type: stages.Scores, Doc: "1 for equal maps, and otherwise 0"},
	},
	Variants: []stages.Variant{{
		Item: "the shifted model", Default: "a subtraction before the first layer, exact for any model",
		Differs: "Quantus changes the bias of the first layer, a convolution, by the shift's response at " +
			"one place, which is another at a border with zero padding: the outputs move by 0.57 on a net " +
			"of one padded layer",
	}, {
		Item:    "the shifted image, and equal maps",
		Default: "all values, within: 1e-4 of the largest magnitude",
		Differs: "Quantus leaves the first value of each image where it is, so that a gradient fails on 4 " +
			"of 6 images of a net without padding; its 1e-4 is absolute, whatever the maps' scale",
	}},
	Defaults: InputInvarianceParams{Within: 1e-4},
	Facts: func(p InputInvarianceParams, _ map[string]stages.Facts) (map[string]stages.Facts, error) {
		change := stages.Measure{Direction: stages.Lower, High: math.Inf(1), Tolerance: 5e-3,
			ItemTolerance: 5e-2}
		same := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-3,
			ItemTolerance: 1}
		if p.Within != 1e-4 {
			same.Variant = fmt.Sprintf("within %g", p.Within)
		}
		return map[string]stages.Facts{"change": change.Facts(nil), "invariant": same.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p InputInvarianceParams, e *stages.Env) error {
		for i := range e.Len() {
			change, invariant, err := p.compare(e, i)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("change", i, stages.Scalar(change))
			e.Put("invariant", i, stages.Scalar(invariant))
			e.Done(1)
		}
		return nil
	},
})

// compare returns the change of item i's map, and whether it is none.
func (p InputInvarianceParams) compare(e *stages.Env, i int) (change, invariant float64, err error) {
	a, b, _, _, err := bothMaps(e, i, "maps", "shifted", metric.Signed)
	if err != nil {
		return 0, 0, err
	}
	if !metric.Relevance(a) || !metric.Defined(b) {
		return math.NaN(), math.NaN(), nil
	}
	most, farthest := 0.0, 0.0
	for k, v := range a {
		most, farthest = math.Max(most, math.Abs(v)), math.Max(farthest, math.Abs(v-b[k]))
	}
	if farthest <= p.Within*most {
		invariant = 1
	}
	return euclidean(a, b) / euclidean(a, nil), invariant, nil
}
