// Package dataset has the stages that load, draw or choose images and texts. dataset/folder (folder.go) lists
// a folder by its folders of classes (folder_walk.go) or by a list (folder_list.go, folder_text.go), whose
// paths it finds (folder_find.go) and whose labels it reads and orders (folder_label.go, folder_several.go),
// with masks and boxes (folder_objects.go, folder_masks.go); it decodes and frames files (framing.go), and
// reports unused files (folder_remarks.go, folder_left.go). Archives are read from a cache. choice.go draws a
// part of a data set, and dataset/select (select.go) keeps images by criteria (select_criteria.go);
// dataset/columns (columns.go) says what is known of images, also by a list. dataset/draw (draw.go) draws the
// items of an exact measurement, as many as dataset/second-phase (second_phase.go) says. The command
// describes folders (content.go) and samples them (sample.go). dataset/shapes draws a scene (shapes_scene.go)
// in one of three domains on a canvas, in integer arithmetic (shapes_canvas.go). dataset/units (units.go)
// draws images whose true attribution is known. texts.go has what dataset/text and dataset/tokens have in
// common.
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
	First  int    `yaml:"first" doc:"index of the first draw" key:"-" min:"0" max:"1000000000"`
	Size   int    `yaml:"size" doc:"width and height in pixels" min:"16" max:"1024"`
	Seed   int    `yaml:"seed" doc:"seed of the sequence of draws; the quickstart's nets were trained on seeds below 1000000" min:"0" max:"1000000000"`
	Domain string `yaml:"domain" doc:"one of three styles of the same scenes" choices:"a|b|c"`

	Objects int `yaml:"objects" doc:"objects of an image; of two, which have different classes, each has an item" key:"added" min:"1" max:"2"`
}

// Shapes draws labelled images: one object of 12 classes, 4 outlines × 3 textures, on a cluttered background.
// A draw is identified by its number, seed, size and domain, and is bit-identical on every machine and in
// every version, because nets were trained on these images. Domains a, b and c render the same scenes, with
// the same labels and masks, in different styles. Any 12 draws that start at a multiple of 12 contain every
// class once. Of two objects each has an item, <draw>/1 and <draw>/2, with the same pixels, its label and its
// mask.
//
// Facts: height, width, classes and labels (newline-separated names), on every port.
var Shapes = stages.New(stages.Def[ShapesParams]{
	Name: "dataset/shapes",
	Doc: `synthetic labelled images of textured shapes

Twelve classes: a disc, square, triangle or cross, striped, checked or dotted, of
varied position, size, rotation and colour, in front of soft ellipses and strokes. The
mask is 1 on the object. Draws are numbered; count and first only select draws, so
that more images cost only the new ones. With objects: 2 a draw has two objects, of
different classes in opposite corners, and an item for each of them: the same image with
the class and the mask of one, so that target: label explains each class of an image.`,
	Version:  1,
	Relation: stages.Each,
	Outputs: []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "u8 [3,size,size]"},
		{Name: "labels", Type: stages.Labels, Doc: "the class, 0 to 11"},
		{Name: "masks", Type: stages.Masks, Doc: "1 on the object's pixels"},
	},
	Defaults: ShapesParams{Count: 64, Size: 64, Seed: 1, Domain: "a", Objects: 1},
	Sources:  shapesSources,
	Facts:    shapesFacts,
	Run:      runShapes,
})

// shapesNote identifies the pixels of one draw; of two objects, ofTwo selects the one that counts.
const (
	shapesNote = "domain=%s seed=%d size=%d index=%d"
	ofTwo      = " object="
)

func shapesSources(p ShapesParams, _ []string) ([]stages.Source, error) {
	sources := make([]stages.Source, 0, p.Count*max(1, p.Objects))
	// Built without fmt and with one allocation per source: planning lists the sources of every cell.
	common := append(make([]byte, 0, 64), "domain="+p.Domain+" seed="...)
	common = append(strconv.AppendInt(common, int64(p.Seed), 10), " size="...)
	common = append(strconv.AppendInt(common, int64(p.Size), 10), " index="...)
	b := make([]byte, 0, 128)
	for i := range p.Count {
		n := strconv.Itoa(p.First + i)
		b = append(append(b[:0], p.Domain...), '-')
		b = append(append(b, "000000"[min(6, len(n)):]...), n...)
		id := len(b)
		text := string(append(append(b, common...), n...))
		if p.Objects < 2 {
			sources = append(sources, stages.Source{ID: text[:id], Note: text[id:]})
			continue
		}
		for _, k := range []string{"1", "2"} {
			sources = append(sources, stages.Source{ID: text[:id] + "/" + k, Note: text[id:] + ofTwo + k})
		}
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

// A drawn holds the payloads of one draw.
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

// draw makes the image identified by a note of shapesSources.
func draw(note string) drawn {
	var domain string
	var seed, size, index int
	if _, err := fmt.Sscanf(note, shapesNote, &domain, &seed, &size, &index); err != nil {
		return drawn{err: fmt.Errorf("the note %q describes no draw: %w", note, err)}
	}
	scenes, counts := []scene{newScene(seed, index)}, 0
	if _, object, two := strings.Cut(note, ofTwo); two {
		scenes = newPair(seed, index)
		if object == "2" {
			counts = 1
		}
	}
	pixels, masks := paint(scenes, domain, seed, index, size)
	return drawn{
		image: stages.NewTensor(pixels, 3, size, size).Encode(),
		label: stages.NewTensor([]int64{int64(scenes[counts].label)}, 1).Encode(),
		mask:  stages.NewTensor(masks[counts], size, size).Encode(),
	}
}
