// Package segments has the stages that divide images into segments, for the stages that replace a segment's
// pixels at once or add up a map over them: squares of a grid (grid.go), superpixels by SLIC (slic.go),
// Felzenszwalb and Huttenlocher (felzenszwalb.go) and quickshift (quickshift.go), the label maps of another
// program (external.go), and the object of a mask and its surroundings (mask.go).
package segments

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/superpixel"
)

// outputs returns the port of the segments.
func outputs() []stages.Port {
	return []stages.Port{{Name: "segments", Type: stages.Segments,
		Doc: "u32 [H,W], the number of each pixel's segment"}}
}

// put puts the segments of item i.
func put(e *stages.Env, i int, labels []uint32, height, width int) {
	e.Put("segments", i, stages.NewTensor(labels, height, width).Encode())
	e.Done(1)
}

// each calls segment for every item.
func each(ctx context.Context, e *stages.Env, segment func(i int) error) error {
	for i := range e.Len() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := segment(i); err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
	}
	return nil
}

// imageOf decodes an image, which has pixels.
func imageOf(payload []byte) (stages.Tensor, error) {
	t, err := stages.DecodeTensor(payload)
	if err == nil && (len(t.Shape) != 3 || t.Len() == 0) {
		err = fmt.Errorf("an image of shape %v has no pixels", t.Shape)
	}
	return t, err
}

// Source is the parameter of stages that segment images by their colours.
type Source struct {
	Of string `yaml:"of" doc:"what is segmented: the image's pixels, or the model's normalised input" choices:"pixels|input"`
}

func (s Source) check(wired func(string) bool) error {
	return stages.GoesWith("of", s.Of, "input", "model", wired("model"))
}

// colourParams are the parameters of an algorithm that segments an image by its colours. Draws are for those
// that need them.
type colourParams interface {
	check(wired func(string) bool) error
	labels(m superpixel.Image, draws *rand.Rand) []uint32
}

// colourStage declares a stage that segments images by their colours.
func colourStage[P colourParams](d stages.Def[P]) stages.Stage {
	d.Relation, d.Outputs = stages.Each, outputs()
	d.Inputs = []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "the images"},
		{Name: "model", Type: stages.Model, Optional: true,
			Doc: "of input: the classifier whose normalised input is segmented"},
	}
	d.Check = func(p P, wired func(string) bool) error { return p.check(wired) }
	d.Run = func(ctx context.Context, p P, e *stages.Env) error {
		var net *program.Net
		if e.Wired("model") {
			var err error
			if net, err = program.Load(e); err != nil {
				return err
			}
		}
		return each(ctx, e, func(i int) error {
			t, err := imageOf(e.In("images", i))
			if err != nil {
				return err
			}
			if net != nil {
				values := make([]float32, net.Size())
				if err := net.Normalise(t, values); err != nil {
					return err
				}
				t = stages.NewTensor(values, net.Channels, net.Height, net.Width)
			}
			m := superpixel.ImageOf(t)
			if !m.Finite() {
				return errors.New("a value of the image isn't a number, or is infinite")
			}
			var draws *rand.Rand
			if d.Seeded {
				draws = e.Rand("segments", i)
			}
			put(e, i, p.labels(m, draws), m.Height, m.Width)
			return nil
		})
	}
	return stages.New(d)
}
