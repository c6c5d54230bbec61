package attribute

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
)

// ConstantParams are the parameters of [Constant].
type ConstantParams struct{ Common }

// Constant makes maps that are the same everywhere.
var Constant = modelFreeMethod(stages.Def[ConstantParams]{
	Name: "attribute/constant",
	Doc: `the same relevance everywhere

A baseline: 1 in every channel of every pixel, whatever the image and the model.
What it scores is what a metric gives for nothing.`,
	Version:  1,
	Defaults: ConstantParams{Common: common()},
	Run: func(ctx context.Context, p ConstantParams, e *stages.Env) error {
		return mapImages(ctx, e, func(_, channels, height, width int) (stages.Tensor, error) {
			ones := slices.Repeat([]float64{1}, channels*height*width)
			return p.reduced(ones, channels, height, width), nil
		})
	},
})
