package perturb

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// SegmentsParams are the parameters of [Segments].
type SegmentsParams struct {
	Cell int `yaml:"cell" doc:"side in pixels of the squares of a grid, which the right and the lower border cut off; 0: none" min:"0" max:"1024"`
}

// Segments divides images into segments for the stages that replace them at once.
var Segments = stages.New(stages.Def[SegmentsParams]{
	Name: "perturb/segments",
	Doc: `segments of images, of masks and a grid

Pixels are of one segment if they have the same value in the mask, where the port masks
is wired, and lie in the same square of the grid, where cell is given. Pixels that the
mask ignores are a segment of their own. Segments are replaced at once by
perturb/ablation and others with unit: segment.`,
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "the images"},
		{Name: "masks", Type: stages.Masks, Optional: true, Doc: "the objects in them"},
	},
	Outputs:  []stages.Port{{Name: "segments", Type: stages.Segments, Doc: "u32 [H,W], from 0"}},
	Defaults: SegmentsParams{Cell: 16},
	Check: func(p SegmentsParams, wired func(string) bool) error {
		if p.Cell == 0 && !wired("masks") {
			return stages.BadField("cell", "there's nothing to divide images by: give cell, or wire masks")
		}
		return nil
	},
	Run: func(ctx context.Context, p SegmentsParams, e *stages.Env) error {
		for i := range e.Len() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			labels, height, width, err := p.labels(e.In("images", i), e.In("masks", i))
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("segments", i, stages.NewTensor(labels, height, width).Encode())
			e.Done(1)
		}
		return nil
	},
})

// labels returns the segment of each pixel of an image; mask is nil if there is none.
func (p SegmentsParams) labels(image, mask []byte) (labels []uint32, height, width int, err error) {
	t, err := stages.DecodeTensor(image)
	if err != nil {
		return nil, 0, 0, err
	}
	if len(t.Shape) != 3 || t.Shape[1] == 0 || t.Shape[2] == 0 {
		return nil, 0, 0, fmt.Errorf("an image of shape %v has no pixels", t.Shape)
	}
	height, width = t.Shape[1], t.Shape[2]
	labels = make([]uint32, height*width)
	if p.Cell > 0 {
		for i, k := range metric.Regions(height, width, p.Cell).Of {
			labels[i] = uint32(k)
		}
	}
	if mask == nil {
		return labels, height, width, nil
	}
	objects, err := metric.Segments(mask, height, width)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("port masks: %w", err)
	}
	for i, k := range objects.Of {
		labels[i] = labels[i]*uint32(objects.Count) + uint32(k)
	}
	// Without gaps: a square may have one object alone.
	names := slices.Clone(labels)
	slices.Sort(names)
	names = slices.Compact(names)
	for i, l := range labels {
		k, _ := slices.BinarySearch(names, l)
		labels[i] = uint32(k)
	}
	return labels, height, width, nil
}
