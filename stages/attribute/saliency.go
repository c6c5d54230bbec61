package attribute

import (
	"context"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// SaliencyParams are the parameters of [Saliency].
type SaliencyParams struct {
	Tapped
	Abs bool `yaml:"abs" doc:"take each derivative's magnitude before channels become one"`
}

// Saliency is the stage of gradient maps.
var Saliency = program.Stage(stages.Def[SaliencyParams]{
	Name: "attribute/saliency",
	Doc: `how fast the answer changes with each pixel

The derivative ∂f/∂x of the explained number with respect to the normalised image, or
its magnitude. Simonyan, Vedaldi and Zisserman, "Deep Inside Convolutional Networks",
ICLR 2014 workshop, section 3.`,
	Version:  2,
	Relation: stages.Each,
	Device:   true,
	Together: oneWayForward,
	Inputs:   inputs(),
	Outputs:  outputs(),
	Variants: []stages.Variant{{
		Item: "sign and channels", Default: "abs: true, reduce: sum",
		Differs: "the paper takes the largest magnitude of the channels, captum the magnitude of each; the code of MAS the magnitude of the signed sum (abs: false, reduce: abs-sum)",
		Golden:  "captum",
	}},
	Defaults: SaliencyParams{Tapped: tapped(), Abs: true},
	Check:    func(p SaliencyParams, wired func(string) bool) error { return p.check(wired) },
	Run: func(ctx context.Context, p SaliencyParams, e *stages.Env) error {
		return p.backward(ctx, e, p, magnitude(p.Abs))
	},
})

// magnitude returns what fills a map with the derivatives, or with their magnitudes.
func magnitude(abs bool) func(elements []float64, d derivative) {
	if !abs {
		return func(elements []float64, d derivative) {
			for k, g := range d.Gradient {
				elements[k] = float64(g)
			}
		}
	}
	return func(elements []float64, d derivative) {
		for k, g := range d.Gradient {
			elements[k] = math.Abs(float64(g))
		}
	}
}
