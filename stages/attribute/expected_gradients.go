package attribute

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// ExpectedGradientsParams are the parameters of [ExpectedGradients].
type ExpectedGradientsParams struct {
	Common
	Balanced
	Samples int `yaml:"samples" doc:"number of derivatives, each on the path from another image of the background" min:"1" max:"100000"`
	Most    int `yaml:"most" doc:"of a background with more images so many, drawn at random; 0: all" min:"0" max:"1000000"`
}

// ExpectedGradients is expected gradients, or GradientSHAP.
var ExpectedGradients = completeMethod("background", 1e-1, stages.Def[ExpectedGradientsParams]{
	Name: "attribute/expected-gradients",
	Doc: `integrated gradients from images of a data set, the mean

E[(x − b)·∂f/∂x at b + t·(x − b)] for images b of the background and t in (0, 1): what
each pixel adds to the output between images of the data set and this one, also called
GradientSHAP. Each sample draws an image and a t; all images of the background are drawn
equally often, up to one, and the samples' t are stratified. The values of a map sum to the
output less its mean over the images drawn, if the samples suffice; the port
completeness has what is left over. The derivatives are added up inside the model's graph,
so memory doesn't grow with the samples. Erion et al., "Improving performance of deep
learning models with axiomatic attribution priors and expected gradients", Nature Machine
Intelligence 2021.`,
	Version:   1,
	Tolerance: kinks,
	Passes:    stages.Passes{Forward: "≤ 2 × samples + 1", Backward: "samples"},
	Seeded:    true,
	Inputs: append(imageInputs("its background is images of one size: "+
		"use attribute/integrated-gradients with baseline: mask"), stages.Port{
		Name: "background", Type: stages.Background, Accepts: &stages.Images, Via: "dataset/background",
		Optional: true, Else: "dataset/background", Own: true,
		Doc: "the images of a data set with which each image is compared, of the model's size; by default " +
			"the explained images themselves",
	}),
	Variants: []stages.Variant{{
		Item: "draws", Default: "samples: 200, stratified",
		Differs: "shap and captum draw images and t independently, shap 200 of them, captum's GradientShap " +
			"5, with Gaussian noise on the image if asked; neither is seeded",
		Golden: "paths.npz",
	}},
	Declares: func(p ExpectedGradientsParams, _ map[string]stages.Declared) stages.Declared {
		return p.declares(contributionMap, "")
	},
	Defaults: ExpectedGradientsParams{Common: common(), Samples: 200, Most: 200},
})

// An expectation computes expected gradients of items.
type expectation struct {
	ExpectedGradientsParams
	net        *program.Net
	background stages.Tensor
	tangent    program.Tangent
	forward    program.Forward
	answers    map[int][]float32 // of the model, by image of the background
}

func (p ExpectedGradientsParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	x, err := p.expectation(ctx, e, n)
	if err != nil {
		return err
	}
	to := make([]float32, n.Size())
	for i := range e.Len() {
		t, err := p.target(e, i, n)
		if err != nil {
			return err
		}
		if err := image(e, i, n, to); err != nil {
			return err
		}
		draws := stratified(e.Rand("draws", i), p.Samples, x.background.Shape[0])
		values, err := x.attribution(ctx, t, to, draws)
		if err != nil {
			return err
		}
		response, mean, err := x.responses(ctx, t, to, draws)
		if err != nil {
			return err
		}
		e.Put("completeness", i, stages.Scalar(totalOf(values)-(response-mean)))
		putMap(e, i, p.reduced(values, n.Channels, n.Height, n.Width))
	}
	return nil
}

func (p ExpectedGradientsParams) expectation(ctx context.Context, e *stages.Env,
	n *program.Net) (*expectation, error) {
	x := &expectation{ExpectedGradientsParams: p, net: n, answers: map[int][]float32{}}
	payload, err := e.Value("background")
	if err != nil {
		return nil, err
	}
	if x.background, err = stages.DecodeTensor(payload); err != nil {
		return nil, fmt.Errorf("port background: %w", err)
	}
	if len(x.background.Shape) != 4 || x.background.Shape[0] == 0 {
		return nil, fmt.Errorf("port background: a tensor of shape %v has no images", x.background.Shape)
	}
	q, err := p.atImage(ctx, e, n, p.Common)
	if err != nil {
		return nil, err
	}
	if x.tangent, err = n.Tangent(ctx, e.Slot, q, n.Fit(p.Samples, e.Batch)); err != nil {
		return nil, err
	}
	images := min(p.Samples, x.background.Shape[0]) + 1
	x.forward, err = n.Forward(ctx, e.Slot, n.Fit(images, e.Batch))
	return x, err
}

// A pathDraw is a point on the path to an image from one of the background.
type pathDraw struct {
	image int
	t     float64
}

// stratified returns n draws. Their t cut (0, 1) into equal strata with a draw in each. Successive draws take
// all images in random order, and again in another one, so that an image's draws are spread over (0, 1) too.
func stratified(r *rand.Rand, n, images int) []pathDraw {
	draws := make([]pathDraw, n)
	var order []int
	for k := range draws {
		if k%images == 0 {
			order = r.Perm(images)
		}
		draws[k] = pathDraw{order[k%images], (float64(k) + r.Float64()) / float64(n)}
	}
	return draws
}

// attribution returns the mean over draws of derivatives times differences from the background, for an
// image.
func (x *expectation) attribution(ctx context.Context, t program.Target, to []float32,
	draws []pathDraw) ([]float64, error) {
	from := make([]float32, len(to))
	weights := make([]float64, x.tangent.Batch)
	for i := range weights {
		weights[i] = 1 / float64(len(draws))
	}
	x.tangent.Set(t)
	for first := 0; first < len(draws); first += x.tangent.Batch {
		some := draws[first:min(first+x.tangent.Batch, len(draws))]
		for row, d := range some {
			if err := x.normalised(d.image, from); err != nil {
				return nil, err
			}
			between(from, to, d.t, x.tangent.Point(row))
			difference := x.tangent.Tangent(row)
			for i, v := range from {
				difference[i] = to[i] - v
			}
		}
		if err := x.tangent.Run(ctx, weights[:len(some)]); err != nil {
			return nil, err
		}
	}
	return doubles(x.tangent.Sum()), nil
}

// responses returns the response for an image, and its mean over the images drawn.
func (x *expectation) responses(ctx context.Context, t program.Target, to []float32,
	draws []pathDraw) (response, mean float64, err error) {
	const own = -1 // in the place of an image of the background
	lacking := []int{own}
	for _, d := range draws {
		if _, ok := x.answers[d.image]; !ok {
			x.answers[d.image] = nil
			lacking = append(lacking, d.image)
		}
	}
	for first := 0; first < len(lacking); first += x.forward.Batch {
		some := lacking[first:min(first+x.forward.Batch, len(lacking))]
		for row, image := range some {
			if image == own {
				copy(x.forward.Image(row), to)
			} else if err := x.normalised(image, x.forward.Image(row)); err != nil {
				return 0, 0, err
			}
		}
		if err := x.forward.Run(ctx); err != nil {
			return 0, 0, err
		}
		for row, image := range some {
			if image == own {
				response = x.response(x.net, x.forward.Row(row), t)
			} else {
				x.answers[image] = append([]float32(nil), x.forward.Row(row)...)
			}
		}
	}
	for _, d := range draws {
		mean += x.response(x.net, x.answers[d.image], t) / float64(len(draws))
	}
	return response, mean, nil
}

// normalised writes an image of the background, normalised, into dst.
func (x *expectation) normalised(image int, dst []float32) error {
	size := len(x.background.Raw) / x.background.Shape[0]
	one := stages.Tensor{DType: x.background.DType, Shape: x.background.Shape[1:],
		Raw: x.background.Raw[image*size : (image+1)*size]}
	if err := x.net.Normalise(one, dst); err != nil {
		return fmt.Errorf("port background: %w", err)
	}
	return nil
}
