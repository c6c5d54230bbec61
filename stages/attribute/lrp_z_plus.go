package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// LRPZPlusParams are the parameters of [LRPZPlus].
type LRPZPlusParams struct {
	Relevant
	FirstLayer
	Variant string `yaml:"variant" doc:"which products count: those that are positive, or with captum those of positive weights, with the whole bias" choices:"paper|captum"`
}

// LRPZPlus is LRP by the z⁺-rule.
var LRPZPlus = conservingMethod(stages.Def[LRPZPlusParams]{
	Name: "attribute/lrp-z-plus",
	Doc: `layer-wise relevance by the z⁺-rule

As attribute/lrp-epsilon, where inputs share an output's relevance by what is positive of
their products with the weights, (xᵢwᵢⱼ)⁺/Σ(xw)⁺: the αβ-rule with α = 1 and β = 0. No sign
of relevance changes on the way. Montavon et al., "Explaining Nonlinear Classification
Decisions with Deep Taylor Decomposition", Pattern Recognition 2017, equation 15; Bach et
al., PLOS ONE 2015, equation 60.`,
	Version:   1,
	Tolerance: kinks,
	Variants: []stages.Variant{{
		Item: "what is positive", Default: "variant: paper, bias: true",
		Differs: "Zennit leaves the positive part of a bias its share (bias: true), papers give it nothing " +
			"(bias: false); captum's Alpha1_Beta0_Rule clamps weights only, so that negative data add " +
			"negative shares, and leaves the whole bias its share (variant: captum, stabiliser: 1e-9)",
		Golden: "zennit_lrp, captum",
	}},
	Defaults: LRPZPlusParams{Relevant: relevant(), FirstLayer: FirstLayer{"same"}, Variant: "paper"},
})

func (p LRPZPlusParams) propagation(n *program.Net) propagation {
	rule := relevance.ZPlus(float32(p.Stabiliser))
	if p.Variant == "captum" {
		rule = relevance.CaptumZPlus(float32(p.Stabiliser))
	}
	return p.oneRule(n, p.FirstLayer, rule)
}
