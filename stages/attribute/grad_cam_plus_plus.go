package attribute

import (
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// GradCAMPlusPlusParams are the parameters of [GradCAMPlusPlus].
type GradCAMPlusPlusParams struct {
	GradientCAM
	Variant string `yaml:"variant" doc:"paper, without a factor of the whole map; or the code of Gildenblat et al., or that of Rao et al." choices:"paper|official-gildenblat|official-rao"`
}

// GradCAMPlusPlus weights channels by their positive derivatives.
var GradCAMPlusPlus = backwardMethod(stages.Def[GradCAMPlusPlusParams]{
	Name: "attribute/grad-cam-plus-plus",
	Doc: `channels, weighted by the places that speak for the class

A channel's weight is the sum of its positive derivatives, each counted by
α = g²/(2g² + g³·Σa), with the sum of the channel's values a; a place where that is
0/0 counts nothing. The map is made at the layer and enlarged to the image's size; it
isn't normalised. Chattopadhay et al., "Grad-CAM++: Improved Visual Explanations for
Deep Convolutional Networks", WACV 2018, section 3.`,
	Version: 1,
	Variants: []stages.Variant{{
		Item: "factor and division", Default: "paper",
		Differs: "the paper explains exp of the logit, which multiplies a whole map by it: official-rao " +
			"does that (logits above 88 overflow), and puts 1 in the place of denominators of 0; " +
			"official-gildenblat adds 1e-6 to denominators; that code also stretches each map to [0,1], " +
			"which no variant does, for it changes neither order nor sheets",
		Golden: "cam, gridpg_difull_dipart",
	}},
	Defaults: GradCAMPlusPlusParams{GradientCAM: gradientCAM(), Variant: "paper"},
})

func (p GradCAMPlusPlusParams) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	return p.putCAM(e, i, n, results, p.weigh)
}

// weigh is the weightRule of the variant.
func (p GradCAMPlusPlusParams) weigh(value, gradient, weights []float64, response float64) {
	sum, factor, more := 0.0, 1.0, 0.0
	for _, v := range value {
		sum += v
	}
	switch p.Variant {
	case "official-gildenblat":
		more = 1e-6
	case "official-rao":
		factor = math.Exp(response)
	}
	weight := 0.0
	for _, g := range gradient {
		square := float64(g * g)
		below := 2*square + float64(square*g*sum) + more
		if below == 0 && p.Variant == "official-rao" {
			below = 1
		}
		if g > 0 && below != 0 {
			weight += float64(square / below * g * factor)
		}
	}
	fill(weights, weight)
}

func (p GradCAMPlusPlusParams) emit(m *emission) (standalone.Numbers, error) {
	return p.emitCAM(m, p, p.weighNodes)
}

// weighNodes are [GradCAMPlusPlusParams.weigh].
func (p GradCAMPlusPlusParams) weighNodes(m *emission, value, gradient standalone.Numbers) (
	out standalone.Numbers, err error,
) {
	square := gradient.Times(gradient)
	below := square.Times(m.Number(2)).Plus(square.Times(gradient).Times(value.KeepSum(2, 3)))
	if p.Variant == "official-gildenblat" {
		below = below.Plus(m.Number(1e-6))
	}
	undefined := below.IsZero()
	terms := square.Over(below.Plus(undefined)).Times(gradient.Relu())
	if p.Variant != "official-rao" { // which puts 1 in the place of 0
		return terms.Times(m.Number(1).Minus(undefined)).KeepSum(2, 3), nil
	}
	factor, err := m.response(p.Common)
	if err != nil {
		return out, err
	}
	return terms.Times(factor.Exp()).KeepSum(2, 3), nil
}
