package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// GuidedBackpropParams are the parameters of [GuidedBackprop].
type GuidedBackpropParams struct {
	Tapped
	Abs bool `yaml:"abs" doc:"take each value's magnitude before channels become one"`
}

func (p GuidedBackpropParams) backwardPasses(ctx context.Context, e *stages.Env,
	n *program.Net) ([]backwardPass, error) {
	return p.rectifiedPass(ctx, e, n, relevance.Guided())
}

func (p GuidedBackpropParams) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	return p.putGradient(e, i, n, results[0], p.Abs)
}

// rectifiedPass returns the pass of a method whose rules change rectifiers. For a model without rectifiers it
// is the derivative, in the form of other methods, so that they share its result.
func (p Tapped) rectifiedPass(ctx context.Context, e *stages.Env, n *program.Net,
	rules relevance.Policy) ([]backwardPass, error) {
	g, err := n.Graph(ctx, e.Slot, n.Fit(2, 2))
	if err != nil {
		return nil, err
	}
	if relevance.Rectifiers(g) == 0 {
		rules = relevance.Derivative()
	}
	return p.onePass(ctx, e, n, rules)
}

// Remark reports that the model has no rectifiers.
func (GuidedBackpropParams) Remark(g *onnx.Graph) string { return unrectified(g, "this") }

// unrectified returns a remark for models without rectifiers; part names the part of the method concerned.
func unrectified(g *onnx.Graph, part string) string {
	if relevance.Rectifiers(g) > 0 {
		return ""
	}
	return "the model has no Relu, so " + part + " is the plain gradient"
}

// GuidedBackprop is guided backpropagation.
var GuidedBackprop = backwardMethod(stages.Def[GuidedBackpropParams]{
	Name: "attribute/guided-backprop",
	Doc: `the gradient, of which rectifiers pass positive values alone

The backward pass of each Relu (and each Clip from 0) drops negative values, in addition
to those that the derivative drops. A model without rectifiers gives its plain gradient.
Springenberg et al., "Striving for Simplicity: The All Convolutional Net", ICLR 2015
workshop.`,
	Version:   2,
	Tolerance: kinks,
	Variants: []stages.Variant{{
		Item: "sign", Default: "abs: false",
		Differs: "the code of Rao et al. takes the magnitude of each value (abs: true); captum changes " +
			"nn.ReLU alone and so leaves ReLU6 as it is",
		Golden: "captum",
	}},
	Declares: func(p GuidedBackpropParams, _ map[string]stages.Declared) stages.Declared {
		if p.Abs {
			return nil
		}
		return p.declares(gradientMap, "")
	},
	Defaults: GuidedBackpropParams{Tapped: tapped()},
})

func (p GuidedBackpropParams) emit(m *emission) (out standalone.Numbers, err error) {
	result, err := m.one(p)
	if err != nil {
		return out, err
	}
	return m.putGradient(p.Tapped, result, p.Abs)
}
