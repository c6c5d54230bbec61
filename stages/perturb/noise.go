package perturb

import (
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
)

// NoiseParams are the parameters of [Noise].
type NoiseParams struct {
	Draw         string  `yaml:"draw" doc:"which draw: ${draw} where there are several"`
	Distribution string  `yaml:"distribution" doc:"normal with scale as its standard deviation, or uniform within ±scale" choices:"normal|uniform"`
	Scale        float64 `yaml:"scale" doc:"the noise's size" min:"0" max:"1000000"`
	Of           string  `yaml:"of" doc:"scale is in pixel values from 0 to 1, or a share of the image's range" choices:"pixel|range"`
	Clip         bool    `yaml:"clip" doc:"cut off what is below 0 or above 1"`
}

// Noise is the stage that adds noise to images.
var Noise = stages.New(stages.Def[NoiseParams]{
	Name: "perturb/noise",
	Doc: `images with noise added to every value

Each value of each channel gets its own noise. That of a draw depends on the
experiment's seed, the draw's name and the image alone: two scales are the same noise in
two sizes, and draws of more names leave the others alone. Give it an axis of draws, and
let a metric collapse that: score/lipschitz, score/sensitivity. A noisy image's class is
the one predicted for the original unless targets is wired.`,
	Version:  1,
	Relation: stages.Each,
	Seeded:   true,
	Inputs:   []stages.Port{{Name: "images", Type: stages.Images, Doc: "the images"}},
	Outputs:  []stages.Port{{Name: "images", Type: stages.Images, Doc: "the images plus noise, f32"}},
	Defaults: NoiseParams{Distribution: "normal", Scale: 0.1, Of: "pixel"},
	Run: func(ctx context.Context, p NoiseParams, e *stages.Env) error {
		for i := range e.Len() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			image, err := stages.DecodeTensor(e.In("images", i))
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			r := e.Rand("noise "+p.Draw, i)
			draw := r.NormFloat64
			if p.Distribution == "uniform" {
				draw = func() float64 { return 2*r.Float64() - 1 }
			}
			e.Put("images", i, stages.NewTensor(p.noisy(image, draw), image.Shape...).Encode())
			e.Done(1)
		}
		return nil
	},
})

// noisy returns the pixels of an image plus noise, drawn in units of the scale.
func (p NoiseParams) noisy(image stages.Tensor, draw func() float64) []float32 {
	v := image.Float64s()
	low, high := math.Inf(1), math.Inf(-1)
	for i := range v {
		if image.DType == stages.U8 {
			v[i] /= 255
		}
		low, high = math.Min(low, v[i]), math.Max(high, v[i])
	}
	scale := p.Scale
	if p.Of == "range" {
		scale *= high - low
	}
	out := make([]float32, len(v))
	for i := range v {
		x := v[i] + float64(scale*draw())
		if p.Clip {
			x = math.Max(0, math.Min(1, x))
		}
		out[i] = float32(x)
	}
	return out
}
