package perturb

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// MaskedParams are the parameters of [Masked].
type MaskedParams struct {
	Step int `yaml:"step" doc:"the last step whose elements are masked; 0: the whole image" min:"0" max:"255"`
}

// Masked makes the image at one step of a sequence of [GradientMasking]: f32 [3,H,W]. A masked element has
// the value that the model normalises to 0.
var Masked = stages.New(stages.Def[MaskedParams]{
	Name: "perturb/masked",
	Doc: `the image at one step of perturb/gradient-masking

Elements that the sequence has masked by then are zero after normalisation. The images
are made of the original and one byte an element, so they needn't be stored (store: none).
Vukadin et al., 2024, section 3.2.`,
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "model", Type: stages.Model, Doc: "the classifier, which says what zero is"},
		{Name: "images", Type: stages.Images, Doc: "the images"},
		{Name: "removals", Type: stages.Removals, Doc: "the step that masks each element"},
	},
	Outputs:  []stages.Port{{Name: "images", Type: stages.Images, Doc: "the masked images, f32"}},
	Defaults: MaskedParams{Step: 1},
	Facts: func(_ MaskedParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		return map[string]stages.Facts{"images": imageFacts(in["images"])}, nil
	},
	Run: func(_ context.Context, p MaskedParams, e *stages.Env) error {
		n, err := program.Load(e)
		if err != nil {
			return err
		}
		zeros := make([]float32, n.Channels)
		for c := range zeros {
			zeros[c] = zero(n, c)
		}
		for i := range e.Len() {
			image, err := masked(e.In("images", i), e.In("removals", i), zeros, p.Step)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("images", i, image)
			e.Done(1)
		}
		return nil
	},
})

// imageFacts returns the facts that altered images have from the images.
func imageFacts(in stages.Facts) stages.Facts {
	f := stages.Facts{}
	for _, name := range []string{"height", "width"} {
		if v, ok := in[name]; ok {
			f[name] = v
		}
	}
	return f
}

// zero returns the value in [0,1] that the net normalises to 0 in channel c: the mean over the scale, or the
// neighbour of it that float32 arithmetic takes to 0 exactly.
func zero(n *program.Net, c int) float32 {
	v := float32(n.Mean[c] / n.Scale)
	up, down := v, v
	for range 8 {
		if n.Value(up, c) == 0 {
			return up
		}
		if n.Value(down, c) == 0 {
			return down
		}
		up, down = math.Nextafter32(up, 2), math.Nextafter32(down, -1)
	}
	return v
}

// masked returns the payload of an image whose elements go at or before a step.
func masked(image, removals []byte, zeros []float32, step int) ([]byte, error) {
	t, err := stages.DecodeTensor(image)
	if err != nil {
		return nil, err
	}
	r, err := stages.DecodeTensor(removals)
	if err != nil {
		return nil, err
	}
	if len(t.Shape) != 3 || len(r.Shape) != 3 || r.DType != stages.U8 || r.Shape[0] != len(zeros) ||
		!slices.Equal(t.Shape[1:], r.Shape[1:]) {
		return nil, fmt.Errorf("removals of shape %v don't match an image of shape %v for a model of %d "+
			"channels", r.Shape, t.Shape, len(zeros))
	}
	values, pixels := t.Float32s(), t.Shape[1]*t.Shape[2]
	for k := range values {
		if t.DType == stages.U8 {
			values[k] /= 255
		}
		// A grey model's one channel removes the three of the image.
		c := min(k/pixels, len(zeros)-1)
		if s := r.Raw[c*pixels+k%pixels]; s != 0 && int(s) <= step {
			values[k] = zeros[c]
		}
	}
	return stages.NewTensor(values, t.Shape...).Encode(), nil
}
