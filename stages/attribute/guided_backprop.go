package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// GuidedBackpropParams are the parameters of [GuidedBackprop].
type GuidedBackpropParams struct {
	Tapped
	Abs bool `yaml:"abs" doc:"take each value's magnitude before channels become one"`
}

func (p GuidedBackpropParams) waysBack(ctx context.Context, e *stages.Env, n *program.Net) ([]wayBack, error) {
	return p.rectifiedWay(ctx, e, n, relevance.Guided())
}

// rectifiedWay returns the way of a method whose rules change what passes a rectifier. A
// model without any is asked for its derivative, as other methods ask it, so that they
// can share the answer.
func (p Tapped) rectifiedWay(ctx context.Context, e *stages.Env, n *program.Net, rules relevance.Policy) ([]wayBack, error) {
	g, err := n.Graph(ctx, e.Slot, n.Fit(2, 2))
	if err != nil {
		return nil, err
	}
	if relevance.Rectifiers(g) == 0 {
		rules = relevance.Derivative()
	}
	return p.oneWay(ctx, e, n, rules)
}

// Remark tells of models that have nothing to guide.
func (GuidedBackpropParams) Remark(g *onnx.Graph) string { return unrectified(g, "this") }

// unrectified says what else a method's part is on models without rectifiers.
func unrectified(g *onnx.Graph, part string) string {
	if relevance.Rectifiers(g) > 0 {
		return ""
	}
	return "the model has no Relu, so " + part + " is the plain gradient"
}

// GuidedBackprop is the stage of guided backpropagation.
var GuidedBackprop = program.Stage(stages.Def[GuidedBackpropParams]{
	Name: "attribute/guided-backprop",
	Doc: `the gradient, where only what is positive passes a rectifier

On the way back through each Relu (and each Clip from 0) what is negative is
dropped, besides what the derivative drops. A model without rectifiers gives its
plain gradient. Springenberg et al., "Striving for Simplicity: The All Convolutional
Net", ICLR 2015 workshop.`,
	Version:  2,
	Relation: stages.Each,
	Device:   true,
	Together: oneWayForward,
	Inputs:   inputs(),
	Outputs:  outputs(),
	Variants: []stages.Variant{{
		Item: "sign", Default: "abs: false",
		Differs: "the code of Rao et al. takes the magnitude of each value (abs: true); captum changes nn.ReLU alone and so leaves ReLU6 as it is",
		Golden:  "captum",
	}},
	Defaults: GuidedBackpropParams{Tapped: tapped()},
	Check:    func(p GuidedBackpropParams, wired func(string) bool) error { return p.check(wired) },
	Run: func(ctx context.Context, p GuidedBackpropParams, e *stages.Env) error {
		return p.backward(ctx, e, p, magnitude(p.Abs))
	},
})
