package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
)

// RandomParams are the parameters of [Random].
type RandomParams struct {
	Common
	Distribution string `yaml:"distribution" doc:"of each channel of each pixel: uniform on [0,1), or the standard normal" choices:"uniform|normal"`
}

// Random makes maps of noise.
var Random = modelFreeMethod(stages.Def[RandomParams]{
	Name: "attribute/random",
	Doc: `independent noise in every pixel

A baseline: what it scores is what a metric gives for guessing. Every image has
noise of its own, which depends on the experiment's seed and the image alone.`,
	Version:  1,
	Seeded:   true,
	Defaults: RandomParams{Common: common(), Distribution: "uniform"},
	Variants: []stages.Variant{{
		Item: "distribution", Default: "uniform",
		Differs: "the MAS authors draw uniformly in three channels and take the magnitude of their sum " +
			"(reduce: abs-sum); the absLRP paper draws from a normal distribution",
	}},
	Run: func(ctx context.Context, p RandomParams, e *stages.Env) error {
		return mapImages(ctx, e, func(i, channels, height, width int) (stages.Tensor, error) {
			r := e.Rand("map", i)
			draw := r.Float64
			if p.Distribution == "normal" {
				draw = r.NormFloat64
			}
			values := make([]float64, channels*height*width)
			for k := range values {
				values[k] = draw()
			}
			return p.reduced(values, channels, height, width), nil
		})
	},
})
