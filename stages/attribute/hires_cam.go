package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// HiResCAMParams are the parameters of [HiResCAM].
type HiResCAMParams struct{ GradientCAM }

// HiResCAM weights every place of a channel by its derivative.
var HiResCAM = backwardMethod(stages.Def[HiResCAMParams]{
	Name: "attribute/hires-cam",
	Doc: `channels, weighted by the derivative at each place

The sum over the channels of value times derivative, max(Σₖ ∂f/∂Aₖ·Aₖ, 0) at each place.
For a model that ends in one linear layer behind this one it is each place's share of
the output, bias apart. The map is made at the layer and enlarged to the image's size;
it isn't normalised. Draelos and Carin, "Use HiResCAM instead of Grad-CAM for faithful
explanations of convolutional neural networks", 2020.`,
	Version:   1,
	Tolerance: kinks,
	Variants: []stages.Variant{{
		Item: "sign and range", Default: "relu: true",
		Differs: "the paper keeps both signs (relu: false); the code of Gildenblat et al. keeps what is " +
			"positive and stretches each map to [0,1]",
		Golden: "cam",
	}},
	Defaults: HiResCAMParams{gradientCAM()},
})

func (p HiResCAMParams) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	return p.putCAM(e, i, n, results, byPlace)
}

// byPlace weights each place of a channel by its derivative.
func byPlace(_, gradient, weights []float64, _ float64) { copy(weights, gradient) }

func (p HiResCAMParams) emit(m *emission) (standalone.Numbers, error) {
	return p.emitCAM(m, p, byPlaceNodes)
}
