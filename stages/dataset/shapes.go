// Package dataset holds the stages that bring images into an experiment.
package dataset

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/sourcegraph/conc/iter"

	"github.com/runexp/runexp/stages"
)

// ShapesParams are the parameters of [Shapes].
type ShapesParams struct {
	Count  int    `yaml:"count" doc:"how many images" key:"-" min:"1" max:"10000000"`
	First  int    `yaml:"first" doc:"number of the first draw" key:"-" min:"0" max:"1000000000"`
	Size   int    `yaml:"size" doc:"width and height in pixels" min:"16" max:"1024"`
	Seed   int    `yaml:"seed" doc:"which sequence of draws; the nets of the quickstart were trained on seeds below 1000000" min:"0" max:"1000000000"`
	Domain string `yaml:"domain" doc:"which of two looks of the same scenes" choices:"a|b"`
}

// Shapes draws labelled images: one object of 12 classes, 4 outlines × 3 textures, on a cluttered background.
// Draw number i of a seed, a size and a domain is the same on every machine, bit for bit, forever: nets were
// trained on them. Domains a and b show the same scenes, so also the same labels and masks, in two looks. Any
// 12 draws that start at a multiple of 12 hold every class once.
//
// Facts: height, width, classes and labels (newline-separated names), on every port.
var Shapes = stages.New(stages.Def[ShapesParams]{
	Name: "dataset/shapes",
	Doc: `labelled images of textured shapes, drawn on the spot

Twelve classes: a disc, square, triangle or cross, striped, checked or dotted, of
varied position, size, rotation and colour, before soft ovals and strokes. The mask
is 1 on the object. Draws are numbered: count and first only say which of them are
wanted, so more images cost just the new ones.`,
	Version:  1,
	Relation: stages.Each,
	Outputs: []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "u8 [3,size,size]"},
		{Name: "labels", Type: stages.Labels, Doc: "the class, 0 to 11"},
		{Name: "masks", Type: stages.Masks, Doc: "1 on the object's pixels"},
	},
	Defaults: ShapesParams{Count: 64, Size: 64, Seed: 1, Domain: "a"},
	Sources:  shapesSources,
	Facts:    shapesFacts,
	Run:      runShapes,
})

// shapesNote is what decides the pixels of one draw.
const shapesNote = "domain=%s seed=%d size=%d index=%d"

func shapesSources(p ShapesParams, _ []string) ([]stages.Source, error) {
	sources := make([]stages.Source, p.Count)
	// By hand, and in one piece: planning asks for the sources of every cell.
	common := append(make([]byte, 0, 64), "domain="+p.Domain+" seed="...)
	common = append(strconv.AppendInt(common, int64(p.Seed), 10), " size="...)
	common = append(strconv.AppendInt(common, int64(p.Size), 10), " index="...)
	b := make([]byte, 0, 128)
	for i := range sources {
		n := strconv.Itoa(p.First + i)
		b = append(append(b[:0], p.Domain...), '-')
		b = append(append(b, "000000"[min(6, len(n)):]...), n...)
		id := len(b)
		text := string(append(append(b, common...), n...))
		sources[i] = stages.Source{ID: text[:id], Note: text[id:]}
	}
	return sources, nil
}

func shapesFacts(p ShapesParams, _ map[string]stages.Facts) (map[string]stages.Facts, error) {
	names := make([]string, classCount)
	for i := range names {
		names[i] = className(i)
	}
	f := stages.Facts{
		"height": strconv.Itoa(p.Size), "width": strconv.Itoa(p.Size),
		"classes": strconv.Itoa(classCount), "labels": strings.Join(names, "\n"),
	}
	return map[string]stages.Facts{"images": f, "labels": f, "masks": f}, nil
}

// A drawn is the payloads of one draw.
type drawn struct {
	image, label, mask []byte
	err                error
}

func runShapes(ctx context.Context, _ ShapesParams, e *stages.Env) error {
	threads := e.Slot.Device().Threads
	if threads == 0 {
		threads = runtime.NumCPU()
	}
	draws := iter.Mapper[stages.Call, drawn]{MaxGoroutines: threads}.Map(e.Calls, func(c *stages.Call) drawn {
		if ctx.Err() != nil {
			return drawn{err: context.Cause(ctx)}
		}
		return draw(c.Source.Note)
	})
	for i, d := range draws {
		if d.err != nil {
			return d.err
		}
		e.Put("images", i, d.image)
		e.Put("labels", i, d.label)
		e.Put("masks", i, d.mask)
	}
	e.Done(e.Len())
	return nil
}

// draw makes what a note of shapesSources describes.
func draw(note string) drawn {
	var domain string
	var seed, size, index int
	if _, err := fmt.Sscanf(note, shapesNote, &domain, &seed, &size, &index); err != nil {
		return drawn{err: fmt.Errorf("the note %q describes no draw: %w", note, err)}
	}
	s := newScene(seed, index)
	pixels, mask := paint(&s, domain, seed, index, size)
	return drawn{
		image: stages.NewTensor(pixels, 3, size, size).Encode(),
		label: stages.NewTensor([]int64{int64(s.label)}, 1).Encode(),
		mask:  stages.NewTensor(mask, size, size).Encode(),
	}
}
