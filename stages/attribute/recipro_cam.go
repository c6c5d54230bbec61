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
	case at.atInput(m.net):
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
	height, width := grid.Shape[2], grid.Shape[3]
	numbers := make([]float64, height*width)
	for k := range numbers {
		numbers[k] = float64(k)
	}
	cell := m.column(numbers)
	one := append([]int{1}, value.Shape[1:]...)
	zeros := m.Op("Expand", []string{m.Singles([]float32{0}), m.Shape(one...)})
	weights := m.Double(standalone.Single{Name: m.weights, Shape: []int{m.Batch, m.net.Classes}})
	state := standalone.State{Shape: []int{m.Batch, len(numbers)}, Elem: onnxpb.TensorProto_DOUBLE}
	names := m.Scan([]standalone.State{state}, []standalone.Single{cell},
		func(before []string, of []standalone.Single) []string {
			unit := m.Op("Cast", []string{m.Op("Equal", []string{cell.Name, of[0].Name})},
				onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)})
			in := m.Include(rest, map[string]string{"value": value.Name, "baseline": zeros,
				"masks": p.shown(m, unit, value.Shape, height, width), "image": m.images})
			response := m.Double(standalone.Single{Name: in.Answer(), Shape: weights.Shape})
			response = response.Times(weights).KeepSum(1)
			at := m.Double(standalone.Single{Name: unit, Shape: cell.Shape})
			return []string{m.Numbers(before[0], state.Shape...).Plus(response.Times(at)).Name}
		})
	return m.Numbers(names[0], state.Shape...).Reshape(m.Batch, height, width), nil
}

// shown emits the mask of a cell, as showCell writes it, given a one at the cell and zeros, and the shape of
// the layer's value.
func (p ReciproCAMParams) shown(m *emission, cell string, value []int, height, width int) string {
	tokens := len(value) == 3
	if p.Mask == "gaussian" || p.Mask == "default" && tokens {
		kernel := make([]float32, 9)
		showCell(kernel, 3, 3, 4, true)
		cell = m.Op("Conv", []string{m.Op("Reshape", []string{cell, m.Shape(1, 1, height, width)}),
			m.Singles(kernel, 1, 1, 3, 3)}, onnx.Attr{Name: "pads", Value: []int64{1, 1, 1, 1}})
	}
	if !tokens {
		return m.Op("Reshape", []string{cell, m.Shape(1, 1, height, width)})
	}
	mask := m.Op("Reshape", []string{cell, m.Shape(1, height*width, 1)})
	others := value[1] - height*width // tokens without a place stay visible
	if others == 0 {
		return mask
	}
	ones := m.Singles(slices.Repeat([]float32{1}, others), 1, int64(others), 1)
	return m.Op("Concat", []string{ones, mask}, onnx.Attr{Name: "axis", Value: 1})
}
