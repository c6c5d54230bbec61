package attribute

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
)

// RefineCAMParams are the parameters of [RefineCAM].
type RefineCAMParams struct {
	GradientCAM
	Also    []string `yaml:"also" doc:"the other layers, whose maps are multiplied with that of layer: middle, final, or names of values of the model's graph"`
	Base    string   `yaml:"base" doc:"the method that makes each layer's map" choices:"grad-cam-plus-plus|grad-cam|hires-cam|layer-cam|xgrad-cam"`
	Variant string   `yaml:"variant" doc:"paper divides a layer's map by its largest value; the code of Gildenblat et al. stretches it to [0,1], before and after it is enlarged" choices:"paper|official-gildenblat"`
}

// RefineCAM multiplies the class activation maps of several layers.
var RefineCAM = backwardMethod(stages.Def[RefineCAMParams]{
	Name: "attribute/refine-cam",
	Doc: `class activation maps of several layers, multiplied

The map of each layer, what is positive of it divided by its largest value and enlarged to
the image's size, is a factor: early layers tell where edges are, late ones which object
counts. A layer without positive values makes the map 0. By default the factors are
Grad-CAM++ at the middle and the final layer. All layers are read from one forward pass. The
product isn't stretched. Domeniconi et al., "How to Evaluate and Refine your CAM", 2026.`,
	Version:   1,
	Tolerance: quotientTolerance,
	Passes:    stages.Passes{Forward: "1", Backward: "1"},
	Variants: []stages.Variant{{
		Item: "range of factors", Default: "paper",
		Differs: "official-gildenblat subtracts a layer's least value, too, and does so again at the " +
			"image's size; it means to rectify factors once more, on copies that it drops; torch-cam " +
			"stretches before it enlarges only; both codes stretch the product to [0,1], which no variant " +
			"does",
		Golden: "cams",
	}},
	Defaults: RefineCAMParams{gradientCAM(), []string{"middle"}, "grad-cam-plus-plus", "paper"},
})

// Validate refuses what [CAM] refuses, layers that can't be multiplied, and parameters that would have no
// effect.
func (p RefineCAMParams) Validate() error {
	switch {
	case len(p.Also) == 0:
		return stages.BadField("also", "also names no layer, and the map of one is that of attribute/%s",
			p.Base)
	case slices.Contains(p.layers(), "input") || slices.Contains(p.layers(), ""):
		return stages.BadField("also", "layer input: maps of inner layers are multiplied")
	case len(slices.Compact(slices.Sorted(slices.Values(p.layers())))) < len(p.layers()):
		return stages.BadField("also", "a layer is named twice, so that its map would be squared")
	case p.Size == "layer":
		return stages.BadField("size", "size layer: the layers' maps are multiplied at the image's size")
	case !p.ReLU:
		return stages.BadField("relu", "relu false: of negative factors two would make a positive product")
	}
	return p.CAM.Validate()
}

func (p RefineCAMParams) layers() []string { return append([]string{p.Layer}, p.Also...) }

// at returns the parameters with another layer.
func (p RefineCAMParams) at(layer string) GradientCAM {
	q := p.GradientCAM
	q.Layer = layer
	return q
}

func (p RefineCAMParams) backwardPasses(ctx context.Context, e *stages.Env,
	n *program.Net) (all []backwardPass, err error) {
	for _, layer := range p.layers() {
		passes, err := p.at(layer).backwardPasses(ctx, e, n)
		if err != nil {
			return nil, err
		}
		all = append(all, passes...)
	}
	return all, nil
}

// rule returns the rule of the method that makes each layer's map.
func (p RefineCAMParams) rule() weightRule {
	switch p.Base {
	case "grad-cam":
		return meanGradient
	case "hires-cam":
		return byPlace
	case "layer-cam":
		return byPositive
	case "xgrad-cam":
		return XGradCAMParams{Variant: p.Variant}.weigh
	}
	return GradCAMPlusPlusParams{Variant: p.Variant}.weigh
}

func (p RefineCAMParams) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	var product []float64
	var size planes
	for k, layer := range p.layers() {
		cam, at, err := p.at(layer).cam(e, i, n, results[k], p.rule(), true)
		if err != nil {
			return err
		}
		if size = at; n.Text == nil {
			size = planes{height: n.Height, width: n.Width}
		}
		p.toOne(cam)
		factor := resized(cam, at.height, at.width, size.height, size.width, p.Upsample)
		if p.Variant == "official-gildenblat" {
			p.toOne(factor)
		}
		if product == nil {
			product = slices.Repeat([]float64{1}, len(factor))
		}
		for j, v := range factor {
			product[j] *= v
		}
	}
	p.putPlane(e, i, n, p.flat(product, len(product)), size, p.Upsample)
	return nil
}

// toOne scales values ≥ 0 so that the largest is 1, unless all are 0.
func (p RefineCAMParams) toOne(values []float64) {
	least, most := 0.0, slices.Max(values)
	if p.Variant == "official-gildenblat" {
		least = slices.Min(values)
		most += 1e-7
	}
	if most == least {
		return
	}
	for k := range values {
		values[k] = (values[k] - least) / (most - least)
	}
}

// Remark is that of the first layer that has one.
func (p RefineCAMParams) Remark(g *onnx.Graph) string {
	for _, layer := range p.layers() {
		if why := p.at(layer).Remark(g); why != "" {
			return why
		}
	}
	return ""
}
