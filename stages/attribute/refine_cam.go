package attribute

import (
	"context"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// RefineCAMParams are the parameters of [RefineCAM].
type RefineCAMParams struct {
	GradientCAM
	Also    []string `yaml:"also" doc:"the other layers, if layer names one: middle, final, or names of values of the model's graph"`
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
	Defaults: RefineCAMParams{multiplied(), []string{"middle"}, "grad-cam-plus-plus", "paper"},
})

// multiplied returns the defaults of a product.
func multiplied() GradientCAM {
	p := gradientCAM()
	p.Join = "product"
	return p
}

// Validate refuses what [CAM] refuses, one layer alone, and parameters that would have no effect.
func (p RefineCAMParams) Validate() error {
	q := p.joint()
	switch {
	case !q.several():
		return stages.BadField("also", "also names no layer, and the map of one is that of attribute/%s",
			p.Base)
	case slices.Contains(q.Layer.List(), ""):
		return stages.BadField("also", "one of the layers has no name")
	case len(slices.Compact(slices.Sorted(slices.Values(q.Layer.List())))) < len(q.Layer.List()):
		return stages.BadField("also", "a layer is named twice, so that its map would be squared")
	case p.Join != "product":
		return stages.BadField("join", "join %s: this method multiplies; attribute/%s joins the maps of "+
			"several layers otherwise", p.Join, p.Base)
	case !p.ReLU:
		return stages.BadField("relu", "relu false: of negative factors two would make a positive product")
	}
	return q.CAM.Validate()
}

// joint returns the parameters with all layers in the list.
func (p RefineCAMParams) joint() GradientCAM {
	q := p.GradientCAM
	if !q.several() && len(p.Also) > 0 {
		q.Layer = Layers("[" + strings.Join(append([]string{string(p.Layer)}, p.Also...), ", ") + "]")
	}
	return q
}

func (p RefineCAMParams) backwardPasses(ctx context.Context, e *stages.Env,
	n *program.Net) ([]backwardPass, error) {
	return p.joint().backwardPasses(ctx, e, n)
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
	q := p.joint()
	if p.Variant != "official-gildenblat" {
		return q.putCAM(e, i, n, results, p.rule())
	}
	return q.putGildenblat(e, i, n, results, p.rule())
}

// putGildenblat puts the product of maps that are stretched before and after they are enlarged.
func (p GradientCAM) putGildenblat(e *stages.Env, i int, n *program.Net, results []passResult,
	rule weightRule) error {
	var maps []layerMap
	for k, layer := range p.Layer.List() {
		cam, at, err := p.at(layer).cam(e, i, n, results[k], rule, true)
		if err != nil {
			return err
		}
		stretch(cam, slices.Min(cam), slices.Max(cam)+1e-7)
		if n.Text == nil {
			cam = resized(cam, at.height, at.width, n.Height, n.Width, p.Upsample)
			at = planes{height: n.Height, width: n.Width}
		}
		stretch(cam, slices.Min(cam), slices.Max(cam)+1e-7)
		maps = append(maps, layerMap{cam, at})
	}
	p.Scale = "none"
	p.putJoined(e, i, n, maps, p.Joined, p.Upsample)
	return nil
}

// Remark is that of the first layer that has one.
func (p RefineCAMParams) Remark(g *onnx.Graph) string { return p.joint().Remark(g) }

func (p RefineCAMParams) emit(m *emission) (out standalone.Numbers, err error) {
	q := p.joint()
	if p.Variant != "official-gildenblat" {
		return q.emitCAM(m, p, p.ruleNodes())
	}
	results, err := m.backward(p)
	if err != nil {
		return out, err
	}
	for k, layer := range q.Layer.List() {
		plane, err := m.cam(p.at(layer), results[k], p.ruleNodes(), true)
		if err != nil {
			return out, err
		}
		plane = m.stretched(m.resized(m.stretched(plane, 1e-7), p.Upsample), 1e-7)
		if k > 0 {
			plane = out.Times(plane)
		}
		out = plane
	}
	return m.putPlane(p.Tapped, single(p.Reduce, out), p.Upsample), nil
}

// ruleNodes are [RefineCAMParams.rule].
func (p RefineCAMParams) ruleNodes() weightNodes {
	switch p.Base {
	case "grad-cam":
		return meanGradientNodes
	case "hires-cam":
		return byPlaceNodes
	case "layer-cam":
		return byPositiveNodes
	case "xgrad-cam":
		return XGradCAMParams{Variant: p.Variant}.weighNodes
	}
	return GradCAMPlusPlusParams{Variant: p.Variant}.weighNodes
}
