package dataset

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
)

// BackgroundParams are the parameters of [Background].
type BackgroundParams struct {
	Most int `yaml:"most" doc:"of a larger data set so many images, drawn at random; 0: all" min:"0" max:"1000000"`
}

// Background makes one value of the images of a data set.
var Background = stages.New(stages.Def[BackgroundParams]{
	Name: "dataset/background",
	Doc: `a data set's images as one value

What a method draws its baselines from: attribute/expected-gradients puts this stage
before its input background by itself. The value holds all images at once; so of a data
set with more than most images it has a random choice, which depends on the seed.`,
	Version:  1,
	Relation: stages.Whole,
	Seeded:   true,
	Inputs:   []stages.Port{{Name: "images", Type: stages.Images, Doc: "the images, of one size"}},
	Outputs: []stages.Port{{Name: "background", Type: stages.Background,
		Doc: "u8 or f32 [n,3,H,W], in the order of the data set"}},
	Defaults: BackgroundParams{Most: 200},
	Run:      runBackground,
})

func runBackground(ctx context.Context, p BackgroundParams, e *stages.Env) error {
	images := &e.Ports["images"][0]
	var all stages.Tensor
	for k, i := range p.chosen(e, images.Items.Len()) {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		item, err := images.Items.At(i)
		if err != nil {
			return err
		}
		payload, err := images.Load(i)
		if err != nil {
			return err
		}
		t, err := stages.DecodeTensor(payload)
		switch {
		case err != nil:
			return fmt.Errorf("item %q: %w", item.ID, err)
		case k == 0:
			all = stages.Tensor{DType: t.DType, Shape: append([]int{0}, t.Shape...)}
		case t.DType != all.DType || !slices.Equal(t.Shape, all.Shape[1:]):
			return fmt.Errorf("item %q: an image of %v, of type %s, and others of %v, of type %s, are no "+
				"background: it has images of one size", item.ID, t.Shape, t.DType, all.Shape[1:], all.DType)
		}
		all.Raw = append(all.Raw, t.Raw...)
		all.Shape[0]++
	}
	if all.Raw == nil {
		return fmt.Errorf("a background without images has nothing to compare with")
	}
	e.Emit("background", "", "", all.Encode())
	return nil
}

// chosen returns the positions of the images of the background, in order.
func (p BackgroundParams) chosen(e *stages.Env, images int) []int {
	some := e.SharedRand("background").Perm(images)
	if p.Most > 0 && images > p.Most {
		some = some[:p.Most]
	}
	slices.Sort(some)
	return some
}
