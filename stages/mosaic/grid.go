package mosaic

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
)

// GridParams are the parameters of [Grid].
type GridParams struct {
	N       int    `yaml:"n" doc:"cells along a side" min:"2" max:"8"`
	Classes string `yaml:"classes" doc:"distinct: every cell has another class; corners-repeat: the last cell, bottom right, has the class of the first, top left" choices:"distinct|corners-repeat"`
	Explain string `yaml:"explain" doc:"the cells whose class is explained: all of them, the first and the last, or the first alone" choices:"every|corners|first"`
	Count   int    `yaml:"count" doc:"maximum number of grids; 0: as many as the images allow" min:"0" max:"1000000"`
	Heads   bool   `yaml:"heads" doc:"targets name the explained cell too, for models with a head for each: model/difull and model/dipart need it, others ignore the cell" key:"added"`
}

// Grid builds the grids of the grid pointing game of Böhle, Fritz and Schiele, "Convolutional Dynamic
// Alignment Networks for Interpretable Classifications", CVPR 2021, in the settings of Rao, Böhle and
// Schiele, "Towards Better Understanding Attribution Methods", CVPR 2022, section 3.1.
//
// A grid of n×n images of H×W pixels is an image of nH×nW. Every explained cell of every grid is an item,
// grid-0003/cell-2, with cells numbered row by row from 0; its origin is the image in that cell. Facts:
// height and width of the grids on images and cells; grid, the n, on cells.
var Grid = stages.New(stages.Def[GridParams]{
	Name: "mosaic/grid",
	Doc: `grids of images of different classes

Each grid has n×n images, and an item per explained cell: the grid, the class of that
cell, and its box. Classes are used in turn, in random order, until the images are used
up, each of them at most once. The class of an image is its label, or its target if
targets is wired; if both are wired, images on which they differ are excluded.

A grid is n times as large as its images, so it needs a model that takes such images:
model/gridpg, model/difull and model/dipart make one. Maps need the targets of the grid:

  model: {uses: model/onnx, with: {path: net.onnx}}
  wide:  {uses: model/gridpg, in: {model: model}}
  guess: {uses: model/predict, in: {model: model, images: images}}
  grids:
    uses: mosaic/grid
    in: {images: images, labels: images.labels, targets: guess.targets}
  maps:  {uses: attribute/occlusion, in: {model: wide, images: grids, targets: grids.targets}}
  game:  {uses: score/grid-pointing, in: {maps: maps, cells: grids.cells}}

GridPG is classes: distinct with explain: every; DiFull and DiPart are corners-repeat
with corners and heads: true. Rao, Böhle and Schiele, CVPR 2022.`,
	Version:  1,
	Relation: stages.Whole,
	Seeded:   true,
	Inputs:   classified("images of one size"),
	Outputs: []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "the grid"},
		{Name: "targets", Type: stages.Targets, Doc: "the class in the explained cell"},
		{Name: "cells", Type: stages.Boxes, Doc: "the explained cell, one box; facts: height, width, grid"},
	},
	Defaults: GridParams{N: 2, Classes: "distinct", Explain: "every"},
	Check:    func(_ GridParams, wired func(string) bool) error { return classesAreKnown(wired) },
	Facts: func(p GridParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		height, errH := strconv.Atoi(in["images"]["height"])
		width, errW := strconv.Atoi(in["images"]["width"])
		if errH != nil || errW != nil {
			return map[string]stages.Facts{}, nil // known once the images are
		}
		return p.facts(height, width), nil
	},
	Run:   runGrid,
	Hooks: func(p GridParams) stages.Hooks { return stages.Hooks{Most: p.most, Few: p.few} },
})

// most returns how many items the grids of so many images have.
func (p GridParams) most(in map[string]stages.Amount) int {
	grids := in["images"].Items / (p.N * p.N)
	if p.Count > 0 {
		grids = min(grids, p.Count)
	}
	return grids * p.explained()
}

func (p GridParams) few(in map[string]stages.Amount) error {
	if n := in["images"].Items; n < p.N*p.N {
		return fmt.Errorf("%d images are too few for a grid: it takes %d", n, p.N*p.N)
	}
	return nil
}

// explained returns how many cells of a grid are.
func (p GridParams) explained() int {
	switch p.Explain {
	case "first":
		return 1
	case "corners":
		return 2
	}
	return p.N * p.N
}

// facts returns the facts of grids of images of the given size.
func (p GridParams) facts(height, width int) map[string]stages.Facts {
	h, w := strconv.Itoa(p.N*height), strconv.Itoa(p.N*width)
	return map[string]stages.Facts{
		"images": {"height": h, "width": w},
		"cells":  {"height": h, "width": w, "grid": strconv.Itoa(p.N)},
	}
}

func runGrid(ctx context.Context, p GridParams, e *stages.Env) error {
	classes, err := classesOf(ctx, e)
	if err != nil {
		return err
	}
	draw := newSampler(p, classes, e.SharedRand("grids"))
	images := &e.Ports["images"][0]
	built := 0
	var shape []int // of the image of a cell
	for ; p.Count == 0 || built < p.Count; built++ {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		cells, ok := draw.next()
		if !ok {
			break
		}
		var grid []byte
		if grid, shape, err = paste(images, cells, p.N, shape); err != nil {
			return err
		}
		for k, member := range cells {
			if p.Explain == "corners" && k > 0 && k < len(cells)-1 || p.Explain == "first" && k > 0 {
				continue
			}
			id := fmt.Sprintf("grid-%04d/cell-%d", built, k)
			image, err := images.Items.At(member)
			if err != nil {
				return err
			}
			origin := image.Origin
			e.Emit("images", id, origin, grid)
			target := []int64{classes[member]}
			if p.Heads {
				target = append(target, -1, int64(k))
			}
			e.Emit("targets", id, origin, stages.NewTensor(target, len(target)).Encode())
			e.Emit("cells", id, origin, box(k, p.N, shape[1], shape[2]))
		}
		e.Done(1)
	}
	if built == 0 {
		return fmt.Errorf("too few images for a grid: there are %d images of %d classes, a grid needs %s",
			draw.images, len(draw.pools), draw.needs())
	}
	if built < p.Count {
		e.Warn("%d grids instead of %d: the images are used up", built, p.Count)
	}
	for port, f := range p.facts(shape[1], shape[2]) {
		e.SetFacts(port, f)
	}
	return nil
}

// classified are the ports of images and their classes.
func classified(images string) []stages.Port {
	return []stages.Port{
		{Name: "images", Type: stages.Images, Doc: images},
		{Name: "labels", Type: stages.Labels, Doc: "their classes", Optional: true},
		{Name: "targets", Type: stages.Targets, Doc: "the classes that a model predicts", Optional: true},
	}
}

// classesAreKnown rejects images without classes.
func classesAreKnown(wired func(string) bool) error {
	if !wired("labels") && !wired("targets") {
		return fmt.Errorf("the classes of the images are unknown: wire labels, targets, or both")
	}
	return nil
}

// classesOf returns the class of every image, -1 for excluded images.
func classesOf(ctx context.Context, e *stages.Env) ([]int64, error) {
	items := e.Ports["images"][0].Items
	classes := make([]int64, items.Len())
	for which, port := range []string{"labels", "targets"} {
		if !e.Wired(port) {
			continue
		}
		first := which == 0 || !e.Wired("labels")
		of, err := byItem(ctx, e.Ports[port][0])
		if err != nil {
			return nil, fmt.Errorf("port %s: %w", port, err)
		}
		for i := range classes {
			item, err := items.At(i)
			if err != nil {
				return nil, err
			}
			class, ok := of[item.ID]
			if !ok {
				class, ok = of[item.Origin]
			}
			switch {
			case !ok:
				return nil, fmt.Errorf("item %q: port %s has no item for it", item.ID, port)
			case class < 0:
				return nil, fmt.Errorf("item %q: port %s: %d isn't a class", item.ID, port, class)
			case first:
				classes[i] = class
			case classes[i] != class:
				classes[i] = -1
			}
		}
	}
	return classes, nil
}

// byItem returns the class of every item of a port of targets or labels.
func byItem(ctx context.Context, d stages.Data) (map[string]int64, error) {
	of := make(map[string]int64, d.Items.Len())
	for m, err := range d.All(ctx) {
		if err != nil {
			return nil, err
		}
		t, err := stages.DecodeTensor(m.Data)
		if err != nil {
			return nil, fmt.Errorf("item %q: %w", m.ID, err)
		}
		if t.DType != stages.I64 || t.Len() != 1 {
			return nil, fmt.Errorf("item %q: %s of shape %v isn't one class", m.ID, t.DType, t.Shape)
		}
		of[m.ID] = t.Int64s()[0]
	}
	return of, nil
}

// paste arranges images in rows of n. All must have the type and shape of the first, and the shape expected
// if it isn't nil.
func paste(images *stages.Data, members []int, n int, expected []int) (grid []byte, shape []int, err error) {
	load := func(i int) (stages.Tensor, error) { return imageOf(images, i) }
	return pasted(images, load, members, n, expected)
}

// imageOf returns image i of a port.
func imageOf(images *stages.Data, i int) (stages.Tensor, error) {
	b, err := images.Load(i)
	if err != nil {
		return stages.Tensor{}, err
	}
	t, err := stages.DecodeTensor(b)
	if err == nil && (len(t.Shape) != 3 || t.Len() == 0) {
		err = fmt.Errorf("an image of shape %v is not [channels, height, width]", t.Shape)
	}
	return t, err
}

// pasted does the same with what load makes of the images.
func pasted(images *stages.Data, load func(i int) (stages.Tensor, error), members []int, n int,
	expected []int) (grid []byte, shape []int, err error) {
	var out stages.Tensor
	for k, member := range members {
		t, err := load(member)
		if err == nil && expected != nil && !slices.Equal(t.Shape, expected) {
			err = fmt.Errorf("the images of a grid differ in shape: %v and %v", expected, t.Shape)
		}
		if err == nil && k > 0 && t.DType != out.DType {
			err = fmt.Errorf("the images of a grid differ in type: %s and %s", t.DType, out.DType)
		}
		if err != nil {
			if item, bad := images.Items.At(member); bad == nil {
				err = fmt.Errorf("item %q: %w", item.ID, err)
			}
			return nil, nil, err
		}
		expected = t.Shape
		c, h, w := expected[0], expected[1], expected[2]
		if k == 0 {
			out = stages.Tensor{DType: t.DType, Shape: []int{c, n * h, n * w},
				Raw: make([]byte, n*n*len(t.Raw))}
		}
		row := w * t.DType.Size()
		for y := range c * h {
			channel, line := y/h, y%h
			at := ((channel*n*h+(k/n)*h+line)*n + k%n) * row
			copy(out.Raw[at:at+row], t.Raw[y*row:])
		}
	}
	return out.Encode(), expected, nil
}

// box returns the payload of cell k's box: left, top, right, bottom.
func box(k, n, height, width int) []byte {
	left, top := float32(k%n*width), float32(k/n*height)
	return stages.NewTensor([]float32{left, top, left + float32(width), top + float32(height)}, 1, 4).Encode()
}
