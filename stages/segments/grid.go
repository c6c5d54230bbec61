package segments

import (
	"context"

	"github.com/runexp/runexp/stages"
)

// GridParams are the parameters of [Grid].
type GridParams struct {
	Cells int `yaml:"cells" doc:"rows and columns of rectangles of about equal size, at most one a pixel" min:"1" max:"4096"`
	Side  int `yaml:"side" doc:"instead of cells, the side in pixels of squares, which the right and the lower border cut off; 0: see cells" min:"0" max:"4096"`
}

// Grid divides images into rectangles.
var Grid = stages.New(stages.Def[GridParams]{
	Name: "segments/grid",
	Doc: `the rectangles of a grid

Either rows and columns of about equal size, the same number for all images, or squares
of a given side, the last of which the border cuts off. Rows and columns are those of a
grid of cells that is enlarged to the image by nearest neighbours.`,
	Version:  1,
	Relation: stages.Each,
	Inputs:   []stages.Port{{Name: "images", Type: stages.Images, Doc: "the images"}},
	Outputs:  outputs(),
	Defaults: GridParams{Cells: 8},
	Run: func(ctx context.Context, p GridParams, e *stages.Env) error {
		return each(ctx, e, func(i int) error {
			t, err := imageOf(e.In("images", i))
			if err != nil {
				return err
			}
			height, width := t.Shape[1], t.Shape[2]
			put(e, i, p.labels(height, width), height, width)
			return nil
		})
	},
})

// labels numbers the rectangles row by row.
func (p GridParams) labels(height, width int) []uint32 {
	down, right := p.parts(height), p.parts(width)
	across := right[width-1] + 1
	var out []uint32
	for _, y := range down {
		for _, x := range right {
			out = append(out, y*across+x)
		}
	}
	return out
}

// parts returns the row or column of each pixel along an axis.
func (p GridParams) parts(size int) []uint32 {
	out := make([]uint32, size)
	cells := min(p.Cells, size)
	for k := range out {
		out[k] = uint32(k * cells / size)
		if p.Side > 0 {
			out[k] = uint32(k / p.Side)
		}
	}
	return out
}
