package attribute

import (
	"context"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// AblationCAMParams are the parameters of [AblationCAM].
type AblationCAMParams struct {
	CAM
	Variant string `yaml:"variant" doc:"paper replaces a channel by zeros; official-gildenblat by a number far below all values" choices:"paper|official-gildenblat"`
}

// AblationCAM weights the channels by the drop of the output without them.
var AblationCAM = method(stages.Def[AblationCAMParams]{
	Name: "attribute/ablation-cam",
	Doc: `channels, weighted by the drop of the output without them

A channel's weight is (y − y′)/y, with the explained output y and its value y′
when zeros replace the channel; where y is 0 the map is undefined. It needs no
gradient, but one pass through the rest of the model for every channel. The map,
max(Σₖ wₖAₖ, 0), is made at the layer and enlarged to the image's size; it isn't
normalised. Desai and Ramaswamy, "Ablation-CAM: Visual
Explanations for Deep Convolutional Network via Gradient-free Localization", WACV 2020.`,
	Version:   2,
	Tolerance: dropTolerance,
	Passes:    stages.Passes{Forward: "channels + 2"},
	Variants: []stages.Variant{{
		Item: "what takes a channel's place", Default: "paper",
		Differs: "official-gildenblat puts the layer's smallest value minus 1e7 there, unless that value " +
			"is exactly 0; that code also stretches its maps to [0,1], which no variant does",
		Golden: "cam, gridpg_difull_dipart",
	}},
	Defaults: AblationCAMParams{CAM: defaultCAM(), Variant: "paper"},
})

func (p AblationCAMParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	return p.ablated(ctx, e, n, p.channelWeights)
}

// ablated makes the maps of a method that masks one channel after the other; weights returns the weight of
// each channel.
func (p CAM) ablated(ctx context.Context, e *stages.Env, n *program.Net,
	weights func(ctx context.Context, e *stages.Env, n *program.Net, at layerValue) ([]float64,
		error)) error {
	return p.eachLayer(ctx, e, n, p.Joined, p.Upsample,
		func(ctx context.Context, one Tapped, put func(int, layerMap)) error {
			return one.values(ctx, e, n, func(at layerValue) error {
				w, err := weights(ctx, e, n, at)
				if err != nil {
					return err
				}
				cam := at.planes.combined(p.ReLU, func(c int, weights []float64) { fill(weights, w[c]) })
				put(at.item, layerMap{cam, at.planes})
				return nil
			})
		})
}

// channelWeights computes the relative drop of the explained output without each channel.
func (p AblationCAMParams) channelWeights(ctx context.Context, e *stages.Env, n *program.Net,
	at layerValue) ([]float64, error) {
	channels := at.planes.channels
	m, err := n.MaskedLayer(ctx, e.Slot, at.layer, "channels", channelMask, n.Fit(channels+1, e.Batch))
	if err != nil {
		return nil, err
	}
	instead := make([]float32, len(at.values))
	if least := slices.Min(at.values); p.Variant == "official-gildenblat" && least != 0 {
		fill(instead, least-1e7)
	}
	m.Set(at.values, instead, at.image)
	// The first row keeps all channels.
	responses := make([]float64, 0, channels+1)
	for len(responses) <= channels {
		for row := range min(m.Batch, channels+1-len(responses)) {
			mask := m.Mask(row)
			fill(mask, 1)
			if k := len(responses) + row; k > 0 {
				mask[k-1] = 0
			}
		}
		if err := m.Run(ctx); err != nil {
			return nil, err
		}
		for row := 0; row < m.Batch && len(responses) <= channels; row++ {
			responses = append(responses, p.response(n, m.Row(row), at.target))
		}
	}
	weights := make([]float64, channels)
	for c := range weights {
		if weights[c] = (responses[0] - responses[c+1]) / responses[0]; responses[0] == 0 {
			weights[c] = math.NaN() // a share of 0 is undefined
		}
	}
	return weights, nil
}

// channelMask returns the shape of a mask with one number per channel, given the shape of a layer's value:
// feature maps or tokens.
func channelMask(value []int) []int {
	if len(value) == 3 {
		return []int{value[0], 1, 1}
	}
	return []int{1, value[len(value)-1]}
}
