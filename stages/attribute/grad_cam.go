package attribute

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// GradCAMParams are the parameters of [GradCAM].
type GradCAMParams struct {
	Tapped
	ReLU     bool   `yaml:"relu" doc:"keep only what speaks for the explained class"`
	Upsample string `yaml:"upsample" doc:"how the layer's map gets the image's size" choices:"bilinear|nearest"`
}

// atFinal returns the parameters of methods that look at the last layer that
// still has places.
func atFinal() Tapped {
	p := tapped()
	p.Layer = "final"
	return p
}

// GradCAM is the stage of gradient-weighted class activation maps.
var GradCAM = stages.New(stages.Def[GradCAMParams]{
	Name: "attribute/grad-cam",
	Doc: `channels of a layer, weighted by their mean derivative

The map is made at the layer and enlarged to the image's size; it isn't normalised.
For a vision transformer the layer's tokens are the places. Selvaraju et al.,
"Grad-CAM: Visual Explanations from Deep Networks via Gradient-based Localization",
ICCV 2017, equations 1 and 2.`,
	Version:  1,
	Relation: stages.Each,
	Device:   true,
	Inputs:   inputs(),
	Outputs:  outputs(),
	Variants: []stages.Variant{{
		Item: "attribute/grad-cam: range", Default: "paper",
		Differs: "the code of Gildenblat et al. stretches each map to [0,1] before and after it enlarges it, which changes neither order nor sheets",
		Golden:  "cam",
	}},
	Defaults: GradCAMParams{Tapped: atFinal(), ReLU: true, Upsample: "bilinear"},
	Check:    func(p GradCAMParams, wired func(string) bool) error { return p.check(wired) },
	Run: func(ctx context.Context, p GradCAMParams, e *stages.Env) error {
		n, err := program.Load(e)
		if err != nil {
			return err
		}
		return p.derivatives(ctx, e, n, "gradient", func(i int, d derivative) error {
			cam, at, err := p.cam(d, p.ReLU)
			if err != nil {
				return err
			}
			p.putPlane(e, i, n, p.flat(cam, len(cam)), at, p.Upsample)
			return nil
		})
	},
})

// cam returns the class activation map at the layer, and the layer's places.
func (p Tapped) cam(d derivative, relu bool) ([]float64, planes, error) {
	gradient, err := planesOf(doubles(d.gradient), d.shape)
	if err != nil {
		return nil, planes{}, fmt.Errorf("layer %s: %w", p.Layer, err)
	}
	value, err := planesOf(doubles(d.value), d.shape)
	if err != nil {
		return nil, planes{}, err
	}
	n := gradient.pixels()
	cam := make([]float64, n)
	for c := range gradient.channels {
		weight := 0.0
		for _, g := range gradient.values[c*n : (c+1)*n] {
			weight += g
		}
		weight /= float64(n)
		for k, v := range value.values[c*n : (c+1)*n] {
			cam[k] += float64(weight * v)
		}
	}
	if relu {
		for k, v := range cam {
			cam[k] = max(v, 0)
		}
	}
	return cam, gradient, nil
}

func doubles(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}
