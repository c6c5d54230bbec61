package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// DeconvolutionParams are the parameters of [Deconvolution].
type DeconvolutionParams struct{ Tapped }

func (p DeconvolutionParams) backwardPasses(ctx context.Context, e *stages.Env,
	n *program.Net) ([]backwardPass, error) {
	return p.rectifiedPass(ctx, e, n, relevance.Deconvolution())
}

func (p DeconvolutionParams) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	return p.putGradient(e, i, n, results[0], false)
}

// Remark reports that the model has no rectifiers.
func (DeconvolutionParams) Remark(g *onnx.Graph) string { return unrectified(g, "this") }

// Deconvolution is the backward pass of deconvolutional networks.
var Deconvolution = backwardMethod(stages.Def[DeconvolutionParams]{
	Name: "attribute/deconvolution",
	Doc: `the gradient, rectified in the backward pass

The backward pass of each Relu (and each Clip from 0) drops negative values, regardless
of the forward pass; pools pass them to their maximum. Zeiler and
Fergus, "Visualizing and Understanding Convolutional Networks", ECCV 2014.`,
	Version:   2,
	Tolerance: kinks,
	Declares: func(p DeconvolutionParams, _ map[string]stages.Declared) stages.Declared {
		return p.declares(gradientMap, "")
	},
	Defaults: DeconvolutionParams{tapped()},
})

func (p DeconvolutionParams) emit(m *emission) (out standalone.Numbers, err error) {
	result, err := m.one(p)
	if err != nil {
		return out, err
	}
	return m.putGradient(p.Tapped, result, false)
}
