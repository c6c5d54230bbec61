package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// LRPEpsilonParams are the parameters of [LRPEpsilon].
type LRPEpsilonParams struct {
	Relevant
	FirstLayer
	Epsilon float64 `yaml:"epsilon" doc:"added to the magnitude of each layer's output; 0 is LRP-0" min:"0" max:"1000"`
}

// LRPEpsilon is LRP by the ε-rule.
var LRPEpsilon = conservingMethod(stages.Def[LRPEpsilonParams]{
	Name: "attribute/lrp-epsilon",
	Doc: `layer-wise relevance by the ε-rule

The output is propagated backwards layer by layer: each input of a layer gets the share
xᵢwᵢⱼ/(zⱼ + ε·sign zⱼ) of the relevance of output j, where zⱼ = Σ xᵢwᵢⱼ + bⱼ. Activations
pass relevance on, maxima give it to where they were, pools and sums of branches share
by activation. Without biases and with ε = 0 (LRP-0) a net of Relus gives its input times
its gradient. Bach et al., "On Pixel-Wise Explanations for Non-Linear Classifier
Decisions by Layer-Wise Relevance Propagation", PLOS ONE 2015, equation 58.`,
	Version:   1,
	Tolerance: kinks,
	Variants: []stages.Variant{{
		Item: "ε", Default: "epsilon: 1e-6, stabiliser: 1e-6",
		Differs: "Zennit's default is 1e-6, captum's 1e-9, for pools too (stabiliser: 1e-9); others take " +
			"0.25 times the mean activation",
		Golden: "zennit_lrp, captum",
	}, {
		Item: "start", Default: "start: logit",
		Differs: "captum starts with the logit, Zennit with 1 by default (start: one-hot)",
		Golden:  "zennit_lrp, captum",
	}},
	Defaults: LRPEpsilonParams{Relevant: relevant(), FirstLayer: FirstLayer{"same"}, Epsilon: 1e-6},
})

func (p LRPEpsilonParams) propagation(n *program.Net) propagation {
	return p.oneRule(n, p.FirstLayer, relevance.Epsilon(float32(p.Epsilon)))
}

// oneRule returns the propagation of one rule for all layers with weights but the first.
func (p Relevant) oneRule(n *program.Net, first FirstLayer, rule relevance.LayerRule) propagation {
	c := p.composite(rule, rule, first.rule(n, float32(p.Stabiliser)))
	return propagation{rules: c.Policy(), start: p.start()}
}
