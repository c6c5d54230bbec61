package attribute

import (
	"context"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// ScoreCAMParams are the parameters of [ScoreCAM].
type ScoreCAMParams struct {
	CAM
	Variant string `yaml:"variant" doc:"paper; or the code of Gildenblat et al., which enlarges otherwise; or that of Rao et al., which weighs otherwise" choices:"paper|official-gildenblat|official-rao"`
}

// ScoreCAM weights channels by the output for the image masked by each of them.
var ScoreCAM = method(stages.Def[ScoreCAMParams]{
	Name: "attribute/score-cam",
	Doc: `channels, weighted by the output for the image they mask

Each channel is enlarged to the image's size, stretched to [0,1] and multiplied with
the normalised image. The softmax over the channels of the explained output for these
images weighs the channels; a constant channel shows nothing. It needs no gradient, but
one pass through the model for every channel. The map isn't normalised. Wang et al.,
"Score-CAM: Score-Weighted Visual Explanations for Convolutional Neural Networks", CVPR
2020 workshops, algorithm 1.`,
	Version: 1,
	Passes:  stages.Passes{Forward: "channels + 1"},
	Variants: []stages.Variant{{
		Item: "weights and enlarging", Default: "paper",
		Differs: "official-gildenblat enlarges channels so that corners stay in the corners (that code " +
			"also stretches its maps to [0,1], which no variant does); official-rao weighs by the class's " +
			"probability itself, and a constant channel makes its map undefined",
		Golden: "cam, gridpg_difull_dipart",
	}},
	Inputs: imageInputs("its masks show pixels in part, and a token is shown or not: " +
		"use attribute/ablation-cam"),
	Defaults: ScoreCAMParams{CAM: defaultCAM(), Variant: "paper"},
})

func (p ScoreCAMParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	return p.ablated(ctx, e, n, p.channelWeights)
}

// channelWeights computes the output for the image masked by each channel.
func (p ScoreCAMParams) channelWeights(ctx context.Context, e *stages.Env, n *program.Net,
	at layerValue) ([]float64, error) {
	channels := at.planes.channels
	m, err := n.Masked(ctx, e.Slot, n.Fit(channels, e.Batch))
	if err != nil {
		return nil, err
	}
	m.Set(at.image, make([]float32, n.Size()))
	weights := make([]float64, 0, channels)
	for len(weights) < channels {
		for row := range min(m.Batch, channels-len(weights)) {
			p.show(at.planes, len(weights)+row, m.Mask(row), n.Height, n.Width)
		}
		if err := m.Run(ctx); err != nil {
			return nil, err
		}
		for row := 0; row < m.Batch && len(weights) < channels; row++ {
			response := p.response(n, m.Row(row), at.target)
			if p.Variant == "official-rao" {
				response = n.Probability(m.Row(row), at.target)
			}
			weights = append(weights, response)
		}
	}
	if p.Variant != "official-rao" {
		softmax(weights)
	}
	return weights, nil
}

// show writes channel c as a mask: enlarged, and stretched to [0,1].
func (p ScoreCAMParams) show(at planes, c int, mask []float32, height, width int) {
	how := "bilinear"
	if p.Variant == "official-gildenblat" {
		how = "corners"
	}
	large := resized(at.channel(c), at.height, at.width, height, width, how)
	least, most := slices.Min(large), slices.Max(large)
	span := most - least
	switch {
	case p.Variant == "official-gildenblat":
		span += 1e-8
	case p.Variant == "paper" && span == 0:
		span = 1 // for a mask of zeros
	}
	for k, v := range large {
		mask[k] = float32((v - least) / span)
	}
}

// softmax replaces numbers by their softmax.
func softmax(v []float64) {
	largest, sum := slices.Max(v), 0.0
	for k, x := range v {
		v[k] = math.Exp(x - largest)
		sum += v[k]
	}
	for k := range v {
		v[k] /= sum
	}
}
