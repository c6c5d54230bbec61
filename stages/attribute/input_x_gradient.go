package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// InputXGradientParams are the parameters of [InputXGradient].
type InputXGradientParams struct{ Tapped }

// InputXGradient is the stage of derivatives times what they are taken at.
var InputXGradient = program.Stage(stages.Def[InputXGradientParams]{
	Name: "attribute/input-x-gradient",
	Doc: `the normalised image times the derivative there

What the answer would lose if each pixel went to zero and the model were linear.
Zero is the mean colour for most normalisations, not black. Shrikumar et al., "Not
Just a Black Box: Learning Important Features Through Propagating Activation
Differences", 2016.`,
	Version:  2,
	Relation: stages.Each,
	Device:   true,
	Together: oneWayForward,
	Inputs:   inputs(),
	Outputs:  outputs(),
	Defaults: InputXGradientParams{tapped()},
	Check:    func(p InputXGradientParams, wired func(string) bool) error { return p.check(wired) },
	Run: func(ctx context.Context, p InputXGradientParams, e *stages.Env) error {
		return p.backward(ctx, e, p, func(elements []float64, d derivative) {
			for k, g := range d.Gradient {
				elements[k] = float64(g) * float64(d.Value[k])
			}
		})
	},
})
