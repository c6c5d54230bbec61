package report

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/thumbnail"
)

// ThumbnailsParams are the parameters of [Thumbnails].
type ThumbnailsParams struct {
	Side int `yaml:"side" doc:"the longest side of a thumbnail in pixels" min:"16" max:"256"`
}

// Thumbnails makes maps small enough to be kept when the maps themselves aren't. A pixel is the mean over
// the area that it covers, of the sum over channels, in eight bits between the ends of the colours of
// [Sheet].
var Thumbnails = stages.New(stages.Def[ThumbnailsParams]{
	Name: "report/thumbnails",
	Doc: `small maps, for the page of runexp review

Where the maps themselves are kept, the page needs none. For a stage of maps with store:
none, which are too large to keep, they are what is left to look at:

  thumbnails: {uses: report/thumbnails, in: {maps: maps}}

No other stage reads thumbnails, and the review folder doesn't show them. One has its
channels summed and a byte a pixel: 1 to 255 are linear between the ends, which leave out
the extreme half percent of the values and are −x and x if a value is negative. 0 stands
for an undefined map.`,
	Version:  1,
	Relation: stages.Each,
	Inputs:   []stages.Port{{Name: "maps", Type: stages.Maps, Doc: "maps to make small"}},
	Outputs: []stages.Port{
		{Name: "thumbnails", Type: stages.Thumbnails, Doc: "one [H,W] for each map"},
		{Name: "ends", Type: stages.Ends, Doc: "the values of the levels 1 and 255"},
	},
	Defaults: ThumbnailsParams{Side: thumbnail.Side},
	Run: func(ctx context.Context, p ThumbnailsParams, e *stages.Env) error {
		for i := range e.Len() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			plane, err := thumbnail.PlaneOf(e.In("maps", i))
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			levels, ends := plane.Within(p.Side).Encode()
			e.Put("thumbnails", i, levels)
			e.Put("ends", i, ends)
			e.Done(1)
		}
		return nil
	},
})
