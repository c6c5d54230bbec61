package perturb

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
)

// ShiftParams are the parameters of [Shift].
type ShiftParams struct {
	By float64 `yaml:"by" doc:"what is added to every value, in pixel values from 0 to 1" min:"-1000" max:"1000"`
}

// Shift adds a constant to images.
var Shift = stages.New(stages.Def[ShiftParams]{
	Name: "perturb/shift",
	Doc: `images with a constant added to every value

For model/shift, which takes it away again. By default pixel values are from −1 to 0, as
in Kindermans et al., "The (Un)reliability of Saliency Methods", 2017.`,
	Version:  1,
	Relation: stages.Each,
	Inputs:   []stages.Port{{Name: "images", Type: stages.Images, Doc: "the images"}},
	Outputs:  []stages.Port{{Name: "images", Type: stages.Images, Doc: "the shifted images, f32"}},
	Defaults: ShiftParams{By: -1},
	Facts: func(_ ShiftParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		return map[string]stages.Facts{"images": imageFacts(in["images"])}, nil
	},
	Run: func(ctx context.Context, p ShiftParams, e *stages.Env) error {
		for i := range e.Len() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			image, err := stages.DecodeTensor(e.In("images", i))
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("images", i, stages.NewTensor(shifted(image, p.By), image.Shape...).Encode())
			e.Done(1)
		}
		return nil
	},
})

// shifted returns the pixel values of an image plus a constant.
func shifted(image stages.Tensor, by float64) []float32 {
	out := make([]float32, image.Len())
	for k, v := range image.Float64s() {
		if image.DType == stages.U8 {
			v /= 255
		}
		out[k] = float32(v + by)
	}
	return out
}
