package perturb

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
)

// TranslateParams are the parameters of [Translate].
type TranslateParams struct {
	X int `yaml:"x" doc:"by how many pixels to the right; to the left if negative" min:"-65535" max:"65535"`
	Y int `yaml:"y" doc:"by how many pixels down; up if negative" min:"-65535" max:"65535"`
}

// Translate moves images.
var Translate = stages.New(stages.Def[TranslateParams]{
	Name: "perturb/translate",
	Doc: `images moved by whole pixels, and black where they were

What leaves the frame is lost, and black pixels follow. Give it an axis of distances, and
let score/continuity collapse that. Montavon, Samek and Müller, "Methods for Interpreting
and Understanding Deep Neural Networks", 2018, move an object so.`,
	Version:  1,
	Relation: stages.Each,
	Inputs:   []stages.Port{{Name: "images", Type: stages.Images, Doc: "the images"}},
	Outputs:  []stages.Port{{Name: "images", Type: stages.Images, Doc: "the moved images"}},
	Facts: func(_ TranslateParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		return map[string]stages.Facts{"images": imageFacts(in["images"])}, nil
	},
	Run: func(ctx context.Context, p TranslateParams, e *stages.Env) error {
		for i := range e.Len() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			image, err := stages.DecodeTensor(e.In("images", i))
			if err == nil && len(image.Shape) != 3 {
				err = fmt.Errorf("an image has shape [channels, height, width], not %v", image.Shape)
			}
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			var moved stages.Tensor
			if image.DType == stages.U8 {
				moved = stages.NewTensor(translated(image.Raw, image.Shape, p), image.Shape...)
			} else {
				moved = stages.NewTensor(translated(image.Float32s(), image.Shape, p), image.Shape...)
			}
			e.Put("images", i, moved.Encode())
			e.Done(1)
		}
		return nil
	},
})

// translated returns an image that is moved, channel by channel, with zeros where nothing was.
func translated[V uint8 | float32](v []V, shape []int, p TranslateParams) []V {
	out := make([]V, len(v))
	height, width := shape[1], shape[2]
	for k := range v {
		c, y, x := k/(height*width), k/width%height-p.Y, k%width-p.X
		if y >= 0 && y < height && x >= 0 && x < width {
			out[k] = v[(c*height+y)*width+x]
		}
	}
	return out
}
