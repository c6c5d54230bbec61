package attribute

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// ReciproCAMParams are the parameters of [ReciproCAM].
type ReciproCAMParams struct {
	Tapped
	Mask string `yaml:"mask" doc:"what a pass shows: cell, one cell; gaussian, it and its neighbours, weighted 1 2 1 along each side and divided by 16; by default a cell of feature maps, and gaussian at tokens" choices:"default|cell|gaussian"`
	Joined
}

// Validate refuses what [Tapped] refuses, except several layers, and those that can't be joined.
func (p ReciproCAMParams) Validate() error {
	if err := p.checkLayers(p.Tapped, true); err != nil {
		return err
	}
	return p.validate()
}

// Remark is that of [Tapped] about the first layer with one.
func (p ReciproCAMParams) Remark(g *onnx.Graph) string {
	return p.remarkEach(g, func(at Tapped) string { return at.Remark(g) })
}

// ReciproCAM is the output for each cell of a layer alone.
var ReciproCAM = method(stages.Def[ReciproCAMParams]{
	Name: "attribute/recipro-cam",
	Doc: `the output when one cell of a layer is left at a time

The value of a cell is the explained output of the rest of the model, with all other cells
of the layer set to 0; tokens without a place, such as the class token, stay. At a vision
transformer's tokens the cell and its neighbours are shown, weighted by a Gaussian. It needs
no gradient, but one pass through the rest of the model for every cell: 49 for 7 × 7. The
map is enlarged to the image's size, and isn't normalised. Byun and Lee, "Recipro-CAM:
Fast Gradient-free Visual Explanations for Convolutional Neural Networks", 2022; for
transformers Byun and Lee, "ViT-ReciproCAM: Gradient and Attention-Free Visual
Explanations for Vision Transformer", 2023.`,
	Version: 1,
	Passes:  stages.Passes{Forward: "cells + 1"},
	Variants: []stages.Variant{{
		Item: "range and output", Default: "output: logit",
		Differs: "OpenVINO XAI stretches each map to [0,1], and takes what its model returns, mostly the " +
			"logit; output: probability is the softmax's",
		Golden: "cams",
	}},
	Inputs: imageInputs("its masks are cells of a grid: use attribute/occlusion, which hides one token " +
		"after the other"),
	Defaults: ReciproCAMParams{Tapped: atFinal(), Mask: "default", Joined: joined()},
})

func (p ReciproCAMParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	return p.eachLayer(ctx, e, n, p.Joined, "bilinear",
		func(ctx context.Context, one Tapped, put func(int, layerMap)) error {
			p.Tapped = one
			return p.runLayer(ctx, e, n, put)
		})
}

// runLayer computes the maps of one layer.
func (p ReciproCAMParams) runLayer(ctx context.Context, e *stages.Env, n *program.Net,
	put func(int, layerMap)) error {
	v, err := p.view(ctx, e, n, "zero", func(height, width int) int { return height * width })
	if err != nil {
		return err
	}
	gaussian := p.Mask == "gaussian" || p.Mask == "default" && v.tokens
	for i := range e.Len() {
		t, err := p.target(e, i, n)
		if err != nil {
			return err
		}
		v.set(i)
		values := make([]float64, v.height*v.width)
		for from := 0; from < len(values); from += v.Batch {
			to := min(from+v.Batch, len(values))
			for k := from; k < to; k++ {
				showCell(v.mask(k-from), v.height, v.width, k, gaussian)
			}
			if err := v.run(ctx); err != nil {
				return err
			}
			for k := from; k < to; k++ {
				values[k] = p.response(n, v.Row(k-from), t)
			}
		}
		put(i, layerMap{values, planes{height: v.height, width: v.width}})
	}
	return nil
}

// showCell writes the mask of cell k of a grid. A Gaussian is cut off at the border.
func showCell(mask []float32, height, width, k int, gaussian bool) {
	clear(mask)
	if !gaussian {
		mask[k] = 1
		return
	}
	row, column := k/width, k%width
	for i := max(row-1, 0); i <= min(row+1, height-1); i++ {
		for j := max(column-1, 0); j <= min(column+1, width-1); j++ {
			mask[i*width+j] = beside(i, row) * beside(j, column)
		}
	}
}

// beside returns the weight of index i in a Gaussian of three around another.
func beside(i, middle int) float32 {
	if i == middle {
		return 0.5
	}
	return 0.25
}

func (p ReciproCAMParams) emit(m *emission) (out standalone.Numbers, err error) {
	var maps []standalone.Numbers
	for _, layer := range p.Layer.List() {
		plane, err := p.emitLayer(m, p.at(layer))
		if err != nil {
			return out, err
		}
		maps = append(maps, plane)
	}
	return m.emitJoined(p.Tapped, maps, p.Joined, "bilinear"), nil
}

// emitLayer emits the plane of one layer, [batch, h, w]: the rest of the model runs on one cell after the
// other, so that memory doesn't grow with their number.
func (p ReciproCAMParams) emitLayer(m *emission, at Tapped) (out standalone.Numbers, err error) {
	name, err := at.layer(m.ctx, m.env, m.net)
	if err != nil {
		return out, err
	}
	switch {
	case name == "":
		return out, stages.BadField("layer", "layer %s: a file shows cells of inner layers", at.Layer)
	case p.Output != "logit" || m.net.Probabilities:
		return out, stages.BadField("output", "a file shows cells to logits, and the explained output is a "+
			"probability")
	}
	head, err := m.net.LowerValues(m.ctx, m.Slot, m.Batch, name)
	if err != nil {
		return out, err
	}
	rest, err := m.net.LowerMaskedLayer(m.ctx, m.Slot, m.Batch, name, placeMask)
	if err != nil {
		return out, err
	}
	value := m.include(head, map[string]string{"images": m.images}).Output("value")
	grid, err := m.planes(at, m.Double(value))
	if err != nil {
		return out, err
	}
	masks, units := p.shownCells(m, value.Shape, grid.Shape[2], grid.Shape[3])
	zeros := m.Op("Expand", []string{m.Singles([]float32{0}), m.Shape(append([]int{1}, value.Shape[1:]...)...)})
	weights := m.Double(standalone.Single{Name: m.weights, Shape: []int{m.Batch, m.net.Classes}})
	cells := standalone.State{Shape: []int{m.Batch, units.Shape[1]}, Elem: onnxpb.TensorProto_DOUBLE}
	names := m.Scan([]standalone.State{cells}, []standalone.Single{masks, units},
		func(before []string, of []standalone.Single) []string {
			in := m.Include(rest, map[string]string{"value": value.Name, "baseline": zeros,
				"masks": of[0].Name, "image": m.images})
			answer := m.Double(standalone.Single{Name: in.Answer(), Shape: weights.Shape})
			response := answer.Times(weights).KeepSum(1)
			return []string{m.Numbers(before[0], cells.Shape...).Plus(response.Times(m.Double(of[1]))).Name}
		})
	return m.Numbers(names[0], cells.Shape...).Reshape(m.Batch, grid.Shape[2], grid.Shape[3]), nil
}

// shownCells emits the mask of each cell of a grid, given the shape of the layer's value, and a row with a
// one at the cell.
func (p ReciproCAMParams) shownCells(m *emission, value []int, height, width int) (masks,
	units standalone.Single) {
	shape := placeMask(value[1:])
	cells, size := height*width, onnx.Size(shape)
	gaussian := p.Mask == "gaussian" || p.Mask == "default" && len(value) == 3
	shown := slices.Repeat([]float32{1}, cells*size) // tokens without a place stay visible
	unit := make([]float32, cells*cells)
	for k := range cells {
		showCell(shown[(k+1)*size-cells:][:cells], height, width, k, gaussian)
		unit[k*cells+k] = 1
	}
	each := append([]int{cells, 1}, shape...)
	dims := make([]int64, len(each))
	for i, d := range each {
		dims[i] = int64(d)
	}
	return standalone.Single{Name: m.Singles(shown, dims...), Shape: each},
		standalone.Single{Name: m.Singles(unit, int64(cells), int64(cells)), Shape: []int{cells, cells}}
}
