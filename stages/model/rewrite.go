package model

import (
	"context"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/variant"
)

// A rewriting is the parameters of a stage that rewrites models.
type rewriting interface{ rewriter() variant.Rewriter }

// rewriteStage declares a stage that derives a model from another one. It stores the digest of that model
// and its own parameters, and neither weights nor a graph.
func rewriteStage[P rewriting](d stages.Def[P], port string) stages.Stage {
	d.Relation = stages.Whole
	d.Inputs = []stages.Port{{Name: "model", Type: stages.Model, Doc: "the model that is rewritten"}}
	d.Outputs = []stages.Port{{Name: "model", Type: stages.Model, Doc: port, Base: "model"}}
	d.Run = func(ctx context.Context, p P, e *stages.Env) error {
		n, err := program.LoadAny(e)
		if err != nil {
			return err
		}
		m, err := n.Rewritten(ctx, p.rewriter())
		if err != nil {
			return err
		}
		payload, err := m.Encode()
		if err != nil {
			return err
		}
		e.Set("model", payload)
		e.SetFacts("model", factsOf(m.Spec, labelsLike(e.Facts("model"), n, m.Spec)))
		return nil
	}
	return stages.New(d)
}

// labelsLike returns the names of the classes of a model that was made of n, whose facts are given: each head
// has n's classes.
func labelsLike(facts stages.Facts, n *program.Net, made modelfile.Spec) string {
	labels := facts["labels"]
	if labels == "" || labels == program.AnyNames || n.Classes == 0 {
		return labels
	}
	return strings.Join(slices.Repeat([]string{labels}, made.Classes/n.Classes), "\n")
}

// RandomiseParams are the parameters of [Randomise].
type RandomiseParams struct {
	Share   float64 `yaml:"share" doc:"which share of the layers, from the head; the next whole number of layers counts" min:"0" max:"1"`
	Order   string  `yaml:"order" doc:"cascading: all layers of the share; independent: the last of them alone" choices:"cascading|independent"`
	Weights string  `yaml:"weights" doc:"initial: uniform within ±1/√n, for sums of n products, as PyTorch initialises layers; permuted: the layer's own, in random order" choices:"initial|permuted"`
	Seed    int     `yaml:"seed" doc:"of the random weights" min:"0"`
}

func (p RandomiseParams) rewriter() variant.Rewriter {
	return variant.Randomise{Share: p.Share, Order: p.Order, Weights: p.Weights, Seed: p.Seed}
}

// Randomise is the stage that derives a model with random weights in some layers from a trained one.
var Randomise = rewriteStage(stages.Def[RandomiseParams]{
	Name: "model/randomise",
	Doc: `a model with random weights in some of its layers

The sanity check by model randomisation: a map that stays the same when weights are
random doesn't explain what the model has learnt. Layers are convolutions and matrix
products with constant weights, with their biases, as they are after batch
normalisation is folded in; the table of a text's embedding is none. A share of 0 is the
model itself, of 1 a random one. A
layer's random weights don't depend on the share, so that an axis of shares is one
cascade. Wire the maps' targets from model/predict of the trained model: score/ssim and
score/rank-correlation compare them with its maps. Adebayo et al.,
"Sanity Checks for Saliency Maps", NeurIPS 2018.`,
	Version: 1,
	Variants: []stages.Variant{{
		Item: "random weights", Default: "weights: initial",
		Differs: "the paper draws what its nets were initialised with, a truncated normal distribution; " +
			"Quantus has PyTorch reset every layer, which also makes scales of normalisations 1",
	}},
	Defaults: RandomiseParams{Share: 1, Order: "cascading", Weights: "initial"},
}, "the model with random weights; facts as of model/onnx")

// ShiftParams are the parameters of [Shift].
type ShiftParams struct {
	By float64 `yaml:"by" doc:"what the images are shifted by, in pixel values from 0 to 1" min:"-1000" max:"1000"`
}

func (p ShiftParams) rewriter() variant.Rewriter { return variant.Shift{By: p.By} }

// Shift is the stage that derives a model whose outputs for shifted images are those of the trained one.
var Shift = rewriteStage(stages.Def[ShiftParams]{
	Name: "model/shift",
	Doc: `a model that undoes a shift of its images

The same function of shifted images, those of perturb/shift with the same by, as the
trained model is of the images: the shift is subtracted before the first layer. A method
that explains the function, rather than how it is written, has the same map:
score/input-invariance. Kindermans et al., "The (Un)reliability of Saliency Methods",
2017, who change the biases of the first layer.`,
	Version:  1,
	Defaults: ShiftParams{By: -1},
}, "the model of shifted images; facts as of model/onnx")

// NoiseParams are the parameters of [Noise].
type NoiseParams struct {
	Draw         string  `yaml:"draw" doc:"which draw: ${draw} where there are several"`
	Distribution string  `yaml:"distribution" doc:"normal with scale as its standard deviation, or uniform within ±scale" choices:"normal|uniform"`
	Scale        float64 `yaml:"scale" doc:"the noise's size, in values of the embedding" min:"0" max:"1000000"`
	Seed         int     `yaml:"seed" doc:"of the noise" min:"0"`
}

func (p NoiseParams) rewriter() variant.Rewriter {
	return variant.Noise{Draw: p.Draw, Uniform: p.Distribution == "uniform", Scale: p.Scale, Seed: p.Seed}
}

// Noise is the stage that derives a model of texts with noise on its embedding.
var Noise = rewriteStage(stages.Def[NoiseParams]{
	Name: "model/noise",
	Doc: `a model of texts with noise on its embedding

What perturb/noise is for images: a token has no values between it and the next, so noise
is added to its vector. Each value gets its own, special tokens' too; that of a draw is
the same for all texts. Methods explain the noisy embedding. Give it an axis of draws, let
the maps of the draws explain the trained model's class, by the targets of model/predict,
and let score/sensitivity collapse the axis:

  noisy: {uses: model/noise, matrix: [draw], in: {model: model}, with: {draw: "${draw}", scale: 0.01}}`,
	Version:  1,
	Defaults: NoiseParams{Distribution: "normal", Scale: 0.01},
}, "the model with noise; facts as of model/onnx")

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
