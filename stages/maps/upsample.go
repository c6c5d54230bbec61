package maps

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// UpsampleParams are the parameters of [Upsample].
type UpsampleParams struct {
	How string `yaml:"how" doc:"bilinear interpolates between the centres of pixels, nearest repeats values" choices:"bilinear|nearest"`
}

// Upsample resizes maps to the size of images.
var Upsample = stages.New(stages.Def[UpsampleParams]{
	Name: "maps/upsample",
	Doc: `maps of the size of their images

For maps that come from elsewhere in the size of a layer or of patches. Bilinear is what
the maps of inner layers are enlarged by: pixels' centres lie at halves, and the border's
values continue beyond it. A map that is larger gets smaller without being averaged.`,
	Version:  1,
	Relation: stages.Each,
	Inputs: append(input(), stages.Port{Name: "images", Type: stages.Images,
		Doc: "images, whose size is taken"}),
	Outputs:  output("maps of the images' size"),
	Defaults: UpsampleParams{How: "bilinear"},
	Run: func(ctx context.Context, p UpsampleParams, e *stages.Env) error {
		return each(ctx, e, 0, func(i int, f field) (field, error) {
			m, err := stages.DecodeTensor(e.In("images", i))
			if err != nil {
				return f, err
			}
			if len(m.Shape) != 3 {
				return f, fmt.Errorf("an image of shape %v is not [3,H,W]", m.Shape)
			}
			return f.resized(m.Shape[1], m.Shape[2], p.How), nil
		})
	},
})

func (f field) resized(height, width int, how string) field {
	enlarge := metric.Enlarge
	if how == "nearest" {
		enlarge = metric.Repeat
	}
	out := f
	out.values, out.height, out.width = nil, height, width
	for c := range f.channels {
		out.values = append(out.values, enlarge(f.channel(c), f.height, f.width, height, width)...)
	}
	return out
}
