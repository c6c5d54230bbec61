package model

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/variant"
)

// GridPGParams are the parameters of [GridPG].
type GridPGParams struct {
	N int `yaml:"n" doc:"cells along a side of the grids" min:"2" max:"8"`
}

func (p GridPGParams) rewriter() variant.Rewriter {
	return variant.GridPG{Cells: variant.Cells{N: p.N}}
}

// gridPort documents the output of the three settings.
const gridPort = "a model of grids of n×n images; facts: height, width, channels, classes, labels"

// GridPG is the stage that makes a model of grids, of a model of images, that sees the grid as a whole.
var GridPG = rewriteStage(stages.Def[GridPGParams]{
	Name: "model/gridpg",
	Doc: `a model of grids of images that sees the whole grid

The grid pointing game's setting. A model with global pooling pools over the larger
input. The dense layers of a model like VGG become convolutions, the first with the
features of one image as its window, whose answers are averaged over the places. A
model that takes images of one size alone, such as a vision transformer with position
embeddings, can't be rewritten. Rao, Böhle and Schiele, CVPR 2022.`,
	Version:  1,
	Defaults: GridPGParams{N: 2},
}, gridPort)

// DiFullParams are the parameters of [DiFull].
type DiFullParams struct {
	N      int      `yaml:"n" doc:"cells along a side of the grids" min:"2" max:"8"`
	Layers []string `yaml:"layers" key:"added" doc:"names of further values of the model's graph at which features are stitched together, so that methods can explain them"`
}

func (p DiFullParams) rewriter() variant.Rewriter {
	return variant.DiFull{Cells: variant.Cells{N: p.N}, Layers: p.Layers}
}

// DiFull is the stage that makes a model of grids, of a model of images, whose heads see one cell each.
var DiFull = rewriteStage(stages.Def[DiFullParams]{
	Name: "model/difull",
	Doc: `a model of grids with heads that see one cell of the image

Cells go through the model one by one. Their features are stitched together at the
middle and the final layer, and at those of layers, so that maps at these are of the
whole grid; "runexp inspect FILE --layers" lists names. Classes are those of the heads,
one head after the other; mosaic/grid with heads: true makes the targets. A map is right if it shows nothing outside the cell: the model doesn't see it.
Rao, Böhle and Schiele, CVPR 2022.`,
	Version:  1,
	Defaults: DiFullParams{N: 2},
}, gridPort)

// DiPartParams are the parameters of [DiPart].
type DiPartParams struct {
	N int `yaml:"n" doc:"cells along a side of the grids" min:"2" max:"8"`
}

func (p DiPartParams) rewriter() variant.Rewriter {
	return variant.DiPart{Cells: variant.Cells{N: p.N}}
}

// DiPart is the stage that makes a model of grids, of a model of images, whose heads see one cell of the
// final layer each.
var DiPart = rewriteStage(stages.Def[DiPartParams]{
	Name: "model/dipart",
	Doc: `a model of grids with heads that see one cell of a layer

The grid goes through the model as a whole up to the final layer, whose features are cut
into cells, one for each head. So what a head sees of other cells is what the features
at its cell's edge do. Classes are those of the heads, one head after the other;
mosaic/grid with heads: true makes the targets. Rao, Böhle and Schiele, CVPR 2022.`,
	Version:  1,
	Defaults: DiPartParams{N: 2},
}, gridPort)
