package segments

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
)

// MaskParams are the parameters of [Mask]: none.
type MaskParams struct{}

// Mask makes segments of the object of a mask and its surroundings.
var Mask = stages.New(stages.Def[MaskParams]{
	Name: "segments/mask",
	Doc: `the object of a mask, and its surroundings

Pixels of one value in the mask are a segment: the object, what surrounds it, and the
pixels that the mask leaves out, such as the object's border.`,
	Version:  1,
	Relation: stages.Each,
	Inputs:   []stages.Port{{Name: "masks", Type: stages.Masks, Doc: "the objects in the images"}},
	Outputs:  outputs(),
	Run: func(ctx context.Context, _ MaskParams, e *stages.Env) error {
		return each(ctx, e, func(i int) error {
			t, err := stages.DecodeTensor(e.In("masks", i))
			if err != nil {
				return err
			}
			if t.DType != stages.U8 || len(t.Shape) != 2 || t.Len() == 0 {
				return fmt.Errorf("a mask of type %s and shape %v has no pixels", t.DType, t.Shape)
			}
			put(e, i, t.Uint32s(), t.Shape[0], t.Shape[1])
			return nil
		})
	},
})
