package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// LayerCAMParams are the parameters of [LayerCAM].
type LayerCAMParams struct{ GradientCAM }

// LayerCAM weights every place of a channel by its positive derivative.
var LayerCAM = backwardMethod(stages.Def[LayerCAMParams]{
	Name: "attribute/layer-cam",
	Doc: `channels, weighted by the positive derivatives at each place

The sum over the channels of value times what is positive of the derivative, max(Σₖ
max(∂f/∂Aₖ, 0)·Aₖ, 0) at each place. The map is made at the layer and enlarged to the
image's size; it isn't normalised. Jiang et al., "LayerCAM: Exploring Hierarchical Class
Activation Maps for Localization", IEEE Transactions on Image Processing 30, 2021.`,
	Version: 1,
	Variants: []stages.Variant{{
		Item: "range", Default: "paper",
		Differs: "the code of Gildenblat et al. stretches each map to [0,1] before and after it enlarges " +
			"it; the paper's tanh, which scales maps of early layers alike, is left out",
		Golden: "cam, gridpg_difull_dipart",
	}},
	Defaults: LayerCAMParams{gradientCAM()},
})

func (p LayerCAMParams) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	return p.putCAM(e, i, n, results, byPositive)
}

// byPositive weights each place of a channel by its derivative where that is positive.
func byPositive(_, gradient, weights []float64, _ float64) {
	for k, g := range gradient {
		weights[k] = max(g, 0)
	}
}

func (p LayerCAMParams) emit(m *emission) (standalone.Numbers, error) {
	return p.emitCAM(m, p, byPositiveNodes)
}
