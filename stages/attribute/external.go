package attribute

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/internal/program"
)

// ExternalParams are the parameters of [External].
type ExternalParams struct {
	Common
	Path string `yaml:"path" doc:"a folder of <item id>.npy, an .npz archive with an array called like each item, or one .npy stack in the order of the items; ids may lack the picture's extension" file:"read"`
}

// Validate requires a path.
func (p ExternalParams) Validate() error {
	if p.Path == "" {
		return stages.BadField("path", "path is required: name the folder, archive or stack of the maps")
	}
	return p.Common.Validate()
}

// External reads maps that another program made.
var External = modelFreeMethod(stages.Def[ExternalParams]{
	Name: "attribute/external",
	Doc: `maps made by another program

Reads one array an item, [height, width] or [channels, height, width] of the image's
size, and sums channels as reduce says; of a text [tokens], with its special tokens, or
[channels, 1, tokens]. Float64 maps stay float64.`,
	Version:  1,
	Defaults: ExternalParams{Common: common()},
	Sources: func(p ExternalParams, ids []string) ([]stages.Source, error) {
		return externalSources(p.Path, ids)
	},
	Run: func(ctx context.Context, p ExternalParams, e *stages.Env) error {
		var r mapReader
		defer r.close()
		return mapImages(ctx, e, func(i, _, height, width int) (stages.Tensor, error) {
			a, err := r.read(e.Source(i))
			if err != nil {
				return stages.Tensor{}, err
			}
			newMap := p.newMap
			if _, err := program.TokensOf(e, i); err == nil {
				newMap = p.newTextMap
			}
			m, err := newMap(a, height, width)
			if err != nil {
				err = fmt.Errorf("%s: %w", e.Source(i).File, err)
			}
			return m, err
		})
	},
})

// newTextMap makes a map of an array, which has a value for each token of a text.
func (p ExternalParams) newTextMap(a npy.Array, height, tokens int) (stages.Tensor, error) {
	shape := a.Shape
	if len(shape) == 1 {
		a.Shape = []int{1, shape[0]}
	}
	if last := len(a.Shape) - 1; last < 1 || a.Shape[last] != tokens || a.Shape[last-1] != height {
		return stages.Tensor{}, fmt.Errorf("a map of shape %v doesn't fit a text of %d tokens, the special "+
			"ones among them", shape, tokens)
	}
	return p.newMap(a, height, tokens)
}

// newMap makes a map of an array, whose shape must fit the image.
func (p ExternalParams) newMap(a npy.Array, height, width int) (stages.Tensor, error) {
	t, err := a.Tensor()
	if err != nil {
		return stages.Tensor{}, err
	}
	shape := t.Shape
	for len(shape) > 2 && shape[0] == 1 {
		shape = shape[1:]
	}
	channels := 1
	if len(shape) == 3 {
		channels, shape = shape[0], shape[1:]
	}
	if len(shape) != 2 || shape[0] != height || shape[1] != width || channels == 0 {
		hint := ""
		if len(t.Shape) == 3 && t.Shape[0] == height && t.Shape[1] == width {
			hint = "; channels come first"
		}
		return stages.Tensor{}, fmt.Errorf("a map of shape %v doesn't fit an image of %d×%d pixels%s",
			t.Shape, height, width, hint)
	}
	values := t.Float64s()
	if t.DType != stages.F64 {
		return p.reduced(values, channels, height, width), nil
	}
	if p.Reduce == "none" {
		return stages.NewTensor(values, channels, height, width), nil
	}
	return stages.NewTensor(p.flat(values, height*width), height, width), nil
}
