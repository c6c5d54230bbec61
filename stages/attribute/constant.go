package attribute

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
)

// ConstantParams are the parameters of [Constant].
type ConstantParams struct{ Common }

// Constant is the stage of the map that says nothing.
var Constant = stages.New(stages.Def[ConstantParams]{
	Name: "attribute/constant",
	Doc: `the same relevance everywhere

A baseline: 1 in every channel of every pixel, whatever the image and the model.
What it scores is what a metric gives for nothing.`,
	Version:  1,
	Relation: stages.Each,
	Inputs:   modelFree(),
	Outputs:  outputs(),
	Defaults: ConstantParams{Common: common()},
	Run: func(ctx context.Context, p ConstantParams, e *stages.Env) error {
		for i := range e.Len() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			channels, height, width, err := imageSize(e, i)
			if err != nil {
				return err
			}
			values := make([]float64, channels*height*width)
			for k := range values {
				values[k] = 1
			}
			give(e, i, p.reduced(values, channels, height, width))
		}
		return nil
	},
})

// modelFree returns the ports of methods that don't ask a model. They take the
// edges of those that do, so that both can be members of one axis.
func modelFree() []stages.Port {
	return []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "images of the maps' size"},
		{Name: "model", Type: stages.Model, Doc: "not asked", Optional: true},
		{Name: "targets", Type: stages.Targets, Doc: "not asked", Optional: true},
		{Name: "labels", Type: stages.Labels, Doc: "not asked", Optional: true},
	}
}

// imageSize returns the shape of the image of item i.
func imageSize(e *stages.Env, i int) (channels, height, width int, err error) {
	t, err := stages.DecodeTensor(e.In("images", i))
	if err == nil && len(t.Shape) != 3 {
		err = fmt.Errorf("an image has shape [channels, height, width], not %v", t.Shape)
	}
	if err != nil {
		return 0, 0, 0, fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
	}
	return t.Shape[0], t.Shape[1], t.Shape[2], nil
}
