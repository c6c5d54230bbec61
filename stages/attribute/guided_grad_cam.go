package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// GuidedGradCAMParams are the parameters of [GuidedGradCAM].
type GuidedGradCAMParams struct {
	Tapped
	Balanced
	Upsample string `yaml:"upsample" doc:"how the layer's map is enlarged" choices:"nearest|bilinear"`
}

// Validate refuses what [Tapped] refuses, except kept channels, which are the image's here. The map has the
// image's size.
func (p GuidedGradCAMParams) Validate() error {
	if p.Size != "image" {
		return stages.BadField("size", "size %s: the map is a product with one that is made at the input, "+
			"which has the image's size", p.Size)
	}
	layer := p.Tapped
	layer.Reduce = "sum"
	return layer.Validate()
}

func (p GuidedGradCAMParams) backwardPasses(ctx context.Context, e *stages.Env,
	n *program.Net) ([]backwardPass, error) {
	cam, err := Differentiated{p.Tapped, p.Balanced}.backwardPasses(ctx, e, n)
	if err != nil {
		return nil, err
	}
	guided, err := p.atInput().rectifiedPass(ctx, e, n, relevance.Guided())
	return append(cam, guided...), err
}

// atInput returns the parameters of the guided factor, which is made at the input.
func (p GuidedGradCAMParams) atInput() Tapped {
	guided := p.Tapped
	guided.Layer = "input"
	return guided
}

// Remark reports that the model has no rectifiers, or nothing that another backward pass treats otherwise.
func (p GuidedGradCAMParams) Remark(g *onnx.Graph) string {
	if why := unrectified(g, "the guided part"); why != "" {
		return why
	}
	return p.Balanced.Remark(g)
}

// GuidedGradCAM is guided backpropagation times Grad-CAM.
var GuidedGradCAM = backwardMethod(stages.Def[GuidedGradCAMParams]{
	Name: "attribute/guided-grad-cam",
	Doc: `guided backpropagation times the class activation map

The map of attribute/guided-backprop at the input, each pixel multiplied by the
positive part of attribute/grad-cam at the layer. Selvaraju et al., "Grad-CAM: Visual
Explanations from Deep Networks via Gradient-based Localization", ICCV 2017, section
3.2.`,
	Version:   2,
	Tolerance: kinks,
	Passes:    stages.Passes{Forward: "1", Backward: "2"},
	Variants: []stages.Variant{{
		Item: "enlarging", Default: "nearest",
		Differs: "the paper enlarges bilinearly, captum repeats the nearest value by default",
		Golden:  "captum",
	}},
	Defaults: GuidedGradCAMParams{Tapped: atFinal(), Upsample: "nearest"},
})

func (p GuidedGradCAMParams) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	cam, at, err := p.cam(e, i, n, results[0], meanGradient, true)
	if err != nil {
		return err
	}
	values := doubles(results[1].Gradient)
	if n.Text != nil { // a vector a token
		size := len(values) / n.Width
		for k := range values[:size*len(cam)] {
			values[k] *= cam[k/size]
		}
		return p.atInput().put(e, i, n, values, results[1].Shape)
	}
	large := resized(cam, at.height, at.width, n.Height, n.Width, p.Upsample)
	for k := range values {
		values[k] *= large[k%len(large)]
	}
	return p.atInput().put(e, i, n, values, results[1].Shape)
}

func (p GuidedGradCAMParams) emit(m *emission) (out standalone.Numbers, err error) {
	results, err := m.backward(p)
	if err != nil {
		return out, err
	}
	cam, err := m.cam(p.Tapped, results[0], meanGradientNodes, true)
	if err != nil {
		return out, err
	}
	cam = m.resized(cam, p.Upsample).Reshape(m.Batch, 1, m.net.Height, m.net.Width)
	return m.put(p.atInput(), results[1].gradient.Times(cam))
}
