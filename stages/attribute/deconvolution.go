package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// DeconvolutionParams are the parameters of [Deconvolution].
type DeconvolutionParams struct{ Tapped }

func (p DeconvolutionParams) waysBack(ctx context.Context, e *stages.Env, n *program.Net) ([]wayBack, error) {
	return p.rectifiedWay(ctx, e, n, relevance.Deconvolution())
}

// Remark tells of models that have nothing to rectify.
func (DeconvolutionParams) Remark(g *onnx.Graph) string { return unrectified(g, "this") }

// Deconvolution is the stage of deconvolutional networks.
var Deconvolution = program.Stage(stages.Def[DeconvolutionParams]{
	Name: "attribute/deconvolution",
	Doc: `the gradient, rectified on the way back

On the way back through each Relu (and each Clip from 0) what is negative is
dropped, whatever went forward; pools pass on to where their maximum was. Zeiler and
Fergus, "Visualizing and Understanding Convolutional Networks", ECCV 2014.`,
	Version:  2,
	Relation: stages.Each,
	Device:   true,
	Together: oneWayForward,
	Inputs:   inputs(),
	Outputs:  outputs(),
	Defaults: DeconvolutionParams{tapped()},
	Check:    func(p DeconvolutionParams, wired func(string) bool) error { return p.check(wired) },
	Run: func(ctx context.Context, p DeconvolutionParams, e *stages.Env) error {
		return p.backward(ctx, e, p, magnitude(false))
	},
})
