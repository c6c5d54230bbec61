package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// XGradCAMParams are the parameters of [XGradCAM].
type XGradCAMParams struct {
	GradientCAM
	Variant string `yaml:"variant" doc:"paper; or the code of Gildenblat et al., which adds 1e-7 to a channel's sum" choices:"paper|official-gildenblat"`
}

// XGradCAM weights channels by their derivatives' mean, weighted by their values.
var XGradCAM = backwardMethod(stages.Def[XGradCAMParams]{
	Name: "attribute/xgrad-cam",
	Doc: `channels, weighted by their values' mean derivative

max(Σₖ wₖAₖ, 0), with the layer's channels Aₖ and wₖ the mean of ∂f/∂Aₖ over the places,
each weighted by its share of the channel's sum: Σ ∂f/∂Aₖ·Aₖ / Σ Aₖ. So each channel's part
of the map sums, before what is negative is left out, to the same as in HiResCAM; a
channel that sums to 0 counts nothing. The map is made at the layer and enlarged to the
image's size; it isn't normalised. Fu et al., "Axiom-based Grad-CAM: Towards Accurate
Visualization and Explanation of CNNs", BMVC 2020.`,
	Version:   1,
	Tolerance: quotientTolerance,
	Variants: []stages.Variant{{
		Item: "division", Default: "paper",
		Differs: "official-gildenblat adds 1e-7 to a channel's sum, which matters where values of both " +
			"signs cancel; that code also stretches each map to [0,1], which no variant does",
		Golden: "cams",
	}},
	Defaults: XGradCAMParams{GradientCAM: gradientCAM(), Variant: "paper"},
})

func (p XGradCAMParams) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	return p.putCAM(e, i, n, results, p.weigh)
}

// weigh is the weightRule of the variant.
func (p XGradCAMParams) weigh(value, gradient, weights []float64, _ float64) {
	sum, above := p.guard(), 0.0
	for k, v := range value {
		sum += v
		above += float64(v * gradient[k])
	}
	if sum == 0 {
		fill(weights, 0)
		return
	}
	fill(weights, above/sum)
}

// guard is what the variant adds to a channel's sum.
func (p XGradCAMParams) guard() float64 {
	if p.Variant == "official-gildenblat" {
		return 1e-7
	}
	return 0
}

func (p XGradCAMParams) emit(m *emission) (standalone.Numbers, error) {
	return p.emitCAM(m, p, p.weighNodes)
}

// weighNodes are [XGradCAMParams.weigh].
func (p XGradCAMParams) weighNodes(m *emission, value, gradient standalone.Numbers) (
	out standalone.Numbers, err error,
) {
	sum := value.KeepSum(2, 3).Plus(m.Number(p.guard()))
	undefined := sum.IsZero()
	weights := gradient.Times(value).KeepSum(2, 3).Over(sum.Plus(undefined))
	return weights.Times(m.Number(1).Minus(undefined)), nil
}
