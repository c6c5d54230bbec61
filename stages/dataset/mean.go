package dataset

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
)

// MeanParams are the parameters of [Mean].
type MeanParams struct {
	Of string `yaml:"of" doc:"what is averaged: images of one size pixel by pixel, or the colours of all pixels of all images" choices:"image|colour"`
}

// Mean makes the mean image of a data set, or an image of its mean colour, for every image.
var Mean = stages.New(stages.Def[MeanParams]{
	Name: "dataset/mean",
	Doc: `the mean of a data set's images, an image for each of them

Each image gets the same mean image, or one of its own size in the mean colour of all
pixels: what perturbation stages replace pixels by (substrate: images), and a baseline
of attribution methods. Wire all images of a data set, or the training images, not only
those that are explained.`,
	Version:  1,
	Relation: stages.Whole,
	Named:    true,
	Inputs:   []stages.Port{{Name: "images", Type: stages.Images, Doc: "the images of the data set"}},
	Outputs:  []stages.Port{{Name: "images", Type: stages.Images, Doc: "f32 [3,H,W] in [0,1]"}},
	Defaults: MeanParams{Of: "image"},
	Facts: func(_ MeanParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		return map[string]stages.Facts{"images": in["images"]}, nil
	},
	Run: runMean,
})

// A mean is the sum of the values seen so far: of each channel of each pixel, or of each channel.
type mean struct {
	sum    []float64
	shape  []int // of the images
	pixels int   // number of values added to each sum
}

func runMean(ctx context.Context, p MeanParams, e *stages.Env) error {
	var m mean
	images := &e.Ports["images"][0]
	colour := p.Of == "colour"
	var shapes [][]int
	for image, err := range images.All(ctx) {
		if err != nil {
			return err
		}
		shape, err := m.add(image.Data, colour)
		if err != nil {
			return fmt.Errorf("item %q: %w", image.ID, err)
		}
		shapes = append(shapes, shape)
	}
	made := map[string][]byte{} // by shape: most data sets have one
	for i, shape := range shapes {
		item, err := images.Items.At(i)
		if err != nil {
			return err
		}
		key := fmt.Sprint(shape)
		if made[key] == nil {
			made[key] = m.image(shape, colour)
		}
		e.Emit("images", item.ID, item.Origin, made[key])
		e.Done(1)
	}
	e.SetFacts("images", images.Facts)
	return nil
}

// add adds an image, and returns its shape.
func (m *mean) add(payload []byte, colour bool) ([]int, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	if len(t.Shape) != 3 || t.Shape[0] != 3 || t.Len() == 0 {
		return nil, fmt.Errorf("an image of shape %v is not RGB", t.Shape)
	}
	if !colour && m.shape != nil && !slices.Equal(t.Shape, m.shape) {
		return nil, fmt.Errorf("an image of %d×%d pixels and others of %d×%d have no mean image: of: colour "+
			"averages colours", t.Shape[1], t.Shape[2], m.shape[1], m.shape[2])
	}
	scale := 1.0
	if t.DType == stages.U8 {
		scale = 255
	}
	n := t.Shape[1] * t.Shape[2]
	if m.shape == nil {
		m.shape, m.sum = t.Shape, make([]float64, t.Len())
		if colour {
			m.sum = make([]float64, 3)
		}
	}
	for i, v := range t.Float64s() {
		if colour {
			i /= n
		}
		m.sum[i] += v / scale
	}
	if m.pixels++; colour {
		m.pixels += n - 1
	}
	return t.Shape, nil
}

// image returns the mean as an image of a shape.
func (m *mean) image(shape []int, colour bool) []byte {
	values := make([]float32, shape[0]*shape[1]*shape[2])
	for i := range values {
		k := i
		if colour {
			k /= shape[1] * shape[2]
		}
		values[i] = float32(m.sum[k] / float64(m.pixels))
	}
	return stages.NewTensor(values, shape...).Encode()
}
