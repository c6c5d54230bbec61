package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// GradCAMElementwiseParams are the parameters of [GradCAMElementwise].
type GradCAMElementwiseParams struct{ GradientCAM }

// GradCAMElementwise sums what is positive of each channel's value times derivative.
var GradCAMElementwise = backwardMethod(stages.Def[GradCAMElementwiseParams]{
	Name: "attribute/grad-cam-elementwise",
	Doc: `what is positive of each channel times its derivative

Σₖ max(∂f/∂Aₖ·Aₖ, 0) at each place: HiResCAM, with what is negative left out before the
sum over the channels instead of after it. It never is negative, so that relu changes
nothing. The map is made at the layer and enlarged to the image's size; it isn't
normalised. It is the GradCAMElementWise of the code of Gildenblat et al., which names no
paper.`,
	Version:   1,
	Tolerance: kinks,
	Variants: []stages.Variant{{
		Item: "range", Default: "official-gildenblat",
		Differs: "that code stretches each map to [0,1] before and after it enlarges it, which changes " +
			"neither order nor sheets",
		Golden: "cams",
	}},
	Defaults: GradCAMElementwiseParams{gradientCAM()},
})

func (p GradCAMElementwiseParams) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	return p.putCAM(e, i, n, results, whereAgreeing)
}

// whereAgreeing weights each place of a channel by its derivative where that has the value's sign.
func whereAgreeing(value, gradient, weights []float64, _ float64) {
	for k, g := range gradient {
		if weights[k] = 0; g*value[k] > 0 {
			weights[k] = g
		}
	}
}

func (p GradCAMElementwiseParams) emit(m *emission) (standalone.Numbers, error) {
	return p.emitCAM(m, p, whereAgreeingNodes)
}

// whereAgreeingNodes are [whereAgreeing].
func whereAgreeingNodes(m *emission, value, gradient standalone.Numbers) (standalone.Numbers, error) {
	against := gradient.Times(value).Relu().IsZero()
	return gradient.Times(m.Number(1).Minus(against)), nil
}
