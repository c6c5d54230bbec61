package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// GradCAMParams are the parameters of [GradCAM].
type GradCAMParams struct{ GradientCAM }

// GradCAM weights channels by their mean derivative.
var GradCAM = backwardMethod(stages.Def[GradCAMParams]{
	Name: "attribute/grad-cam",
	Doc: `channels of a layer, weighted by their mean derivative

max(Σₖ wₖAₖ, 0), with the layer's channels Aₖ and wₖ the mean of ∂f/∂Aₖ over the places.
The map is made at the layer and enlarged to the image's size; it isn't normalised. For
a vision transformer the layer's tokens are the places. Selvaraju et al., "Grad-CAM:
Visual Explanations from Deep Networks via Gradient-based Localization", ICCV 2017,
equations 1 and 2.`,
	Version: 2,
	Variants: []stages.Variant{{
		Item: "range", Default: "paper",
		Differs: "the code of Gildenblat et al. stretches each map to [0,1] before and after it enlarges " +
			"it, which changes neither order nor sheets",
		Golden: "cam",
	}},
	Defaults: GradCAMParams{gradientCAM()},
})

func (p GradCAMParams) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	return p.putCAM(e, i, n, results, meanGradient)
}

func (p GradCAMParams) emit(m *emission) (standalone.Numbers, error) {
	return p.emitCAM(m, p, meanGradientNodes)
}
