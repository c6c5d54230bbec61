package attribute

import (
	"context"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// FullGradParams are the parameters of [FullGrad].
type FullGradParams struct {
	Common
	Balanced
	Variant string `yaml:"variant" doc:"paper scales each channel to [0,1]; the code of Srinivas and Fleuret all channels of a layer together, and enlarges otherwise; that of Gildenblat et al. each channel, and adds 1e-7 to its range" choices:"paper|official-srinivas|official-gildenblat"`
}

// FullGrad adds up what the image and what each layer's biases have of the output.
var FullGrad = backwardMethod(stages.Def[FullGradParams]{
	Name: "attribute/full-grad",
	Doc: `the shares of the image and of all biases, layer by layer

|x·∂f/∂x| plus, for every layer, |b·∂f/∂b|: the magnitudes of each channel are scaled to
[0,1], enlarged to the image's size and added up. A net of ReLUs is a sum of these shares,
Σ x·∂f/∂x + Σ b·∂f/∂b = f, with nothing left for a baseline; the port completeness has what
is left. b is every constant that the model adds: the biases of convolutions, of layers on
tokens and of normalisations, position embeddings. A BatchNormalization adds β − γμ/σ; where
the file has it folded into a convolution, b is the bias of the two together. In the sum,
but not in the map, are biases that have no place in the image, such as the last layer's,
and those inside attention in windows, as Swin's, where tokens of one image are rows of
several: the map of such a net lacks what its attention adds. The paper's maps have biases
of convolutions and of BatchNormalization alone. The map isn't normalised. Srinivas and
Fleuret, "Full-Gradient Representation for Neural Network Visualization", NeurIPS 2019.`,
	Version:   1,
	Tolerance: quotientTolerance,
	Variants: []stages.Variant{{
		Item: "scaling", Default: "paper",
		Differs: "official-srinivas scales all channels of a layer by one range, plus 1e-6, and enlarges " +
			"so that corners stay in the corners; official-gildenblat adds 1e-7 to a channel's range; both " +
			"leave out the constants that aren't biases of convolutions or of BatchNormalization, and " +
			"stretch the sum to [0,1], which no variant does; the latter pairs biases with derivatives in " +
			"the order in which modules are declared, which isn't always that in which they run",
		Golden: "cams",
	}},
	Inputs: imageInputs("its layers' maps are enlarged to an image: use attribute/input-x-gradient"),
	Outputs: append(outputs(), stages.Port{
		Name: "completeness", Type: stages.Scores,
		Doc: "the sum of all shares, with their signs, minus the explained output; undefined for a " +
			"probability, and where constants of several images can't be told apart",
	}),
	Facts: func(FullGradParams, map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Unit: "logit", Direction: stages.None, Low: math.Inf(-1), High: math.Inf(1),
			Tolerance: 1e-3, ItemTolerance: 1e-2}
		return map[string]stages.Facts{"completeness": m.Facts(nil)}, nil
	},
	Defaults: FullGradParams{Common: common(), Variant: "paper"},
})

// scaling returns how magnitudes become a plane.
func (p FullGradParams) scaling() relevance.Scaling {
	switch p.Variant {
	case "official-srinivas":
		return relevance.Scaling{Layer: true, Guard: 1e-6}
	case "official-gildenblat":
		return relevance.Scaling{Guard: 1e-7}
	}
	return relevance.Scaling{}
}

// upsample returns how planes are enlarged.
func (p FullGradParams) upsample() string {
	if p.Variant == "official-srinivas" {
		return "corners"
	}
	return "bilinear"
}

func (p FullGradParams) backwardPasses(ctx context.Context, e *stages.Env,
	n *program.Net) ([]backwardPass, error) {
	q, err := p.atImage(ctx, e, n, p.Common)
	q.Rules = q.Rules.WithShares(p.scaling())
	return []backwardPass{{Common: p.Common, question: q}}, err
}

func (p FullGradParams) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	r := results[0]
	share, sum := make([]float64, len(r.Gradient)), 0.0
	for k, g := range r.Gradient {
		share[k] = float64(g) * float64(r.Value[k])
		sum += share[k]
	}
	out := p.imagePlane(share, n.Channels)
	for _, s := range r.Shares {
		large := resized(doubles(s.Values), s.Height, s.Width, n.Height, n.Width, p.upsample())
		for k, v := range large {
			out[k] += v
		}
	}
	left := math.NaN()
	if r.Total != nil && p.Output == "logit" && !n.Probabilities {
		left = sum + float64(r.Total[0]) - r.response
	}
	e.Put("completeness", i, stages.Scalar(left))
	putMap(e, i, p.reduced(out, 1, n.Height, n.Width))
	return nil
}

// imagePlane returns the sum over channels of the image's scaled magnitudes.
func (p FullGradParams) imagePlane(share []float64, channels int) []float64 {
	s := p.scaling()
	together := channels
	if s.Layer {
		together = 1
	}
	magnitudes := make([]float64, len(share))
	for k, v := range share {
		magnitudes[k] = math.Abs(v)
	}
	for part := range slices.Chunk(magnitudes, len(share)/together) {
		least := slices.Min(part)
		span := slices.Max(part) - least + float64(s.Guard)
		for k := range part {
			if part[k] -= least; span > 0 {
				part[k] /= span
			}
		}
	}
	return metric.Sum.Of(magnitudes, len(share)/channels)
}

func (p FullGradParams) emit(m *emission) (out standalone.Numbers, err error) {
	r, err := m.one(p)
	if err != nil {
		return out, err
	}
	s, axes := p.scaling(), []int{2, 3}
	if s.Layer {
		axes = []int{1, 2, 3}
	}
	share := r.gradient.Times(r.value).Abs()
	least := share.Times(m.Number(-1)).KeepMax(axes...).Times(m.Number(-1))
	span := share.KeepMax(axes...).Minus(least).Plus(m.Number(float64(s.Guard)))
	out = share.Minus(least).Over(span.Plus(span.IsZero())).Sum(1)
	for _, plane := range r.shares {
		out = out.Plus(m.resized(plane, p.upsample()))
	}
	return m.putPlane(Tapped{Common: p.Common}, single(p.Reduce, out), p.upsample()), nil
}
