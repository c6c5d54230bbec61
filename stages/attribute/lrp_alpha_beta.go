package attribute

import (
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// LRPAlphaBetaParams are the parameters of [LRPAlphaBeta].
type LRPAlphaBetaParams struct {
	Relevant
	FirstLayer
	Alpha float64 `yaml:"alpha" doc:"how much positive products count" min:"0" max:"1000"`
	Beta  float64 `yaml:"beta" doc:"how much negative products count; alpha − beta is 1" min:"0" max:"1000"`
}

// Validate refuses what [Tapped] refuses, and weights that don't conserve relevance.
func (p LRPAlphaBetaParams) Validate() error {
	if math.Abs(p.Alpha-p.Beta-1) > 1e-9 {
		return stages.BadField("beta", "alpha − beta is %g and not 1, so that the sum of relevance would "+
			"change from layer to layer", p.Alpha-p.Beta)
	}
	return p.Tapped.Validate()
}

// LRPAlphaBeta is LRP by the αβ-rule.
var LRPAlphaBeta = conservingMethod(stages.Def[LRPAlphaBetaParams]{
	Name: "attribute/lrp-alpha-beta",
	Doc: `layer-wise relevance by the αβ-rule

As attribute/lrp-epsilon, where positive and negative products share apart:
α·(xᵢwᵢⱼ)⁺/Σ(xw)⁺ − β·(xᵢwᵢⱼ)⁻/Σ(xw)⁻ of the relevance of output j goes to input i. Bach et al.,
PLOS ONE 2015, equation 60.`,
	Version:   1,
	Tolerance: kinks,
	Variants: []stages.Variant{{
		Item: "biases", Default: "bias: true",
		Differs: "Zennit leaves the part of a bias with the sum's sign a share of it; papers give it " +
			"nothing (bias: false)",
		Golden: "zennit_lrp",
	}, {
		Item: "signs of data", Default: "x⁺w⁺ and x⁻w⁻ share together",
		Differs: "the code of RAP has them share apart, which gives twice as much where both occur: behind " +
			"Relus they never do, and first layers have the zB-rule there (first: image-box, bias: false)",
		Golden: "rap",
	}},
	Defaults: LRPAlphaBetaParams{Relevant: relevant(), FirstLayer: FirstLayer{"same"}, Alpha: 2, Beta: 1},
})

func (p LRPAlphaBetaParams) propagation(n *program.Net) propagation {
	return p.oneRule(n, p.FirstLayer, relevance.AlphaBeta(float32(p.Alpha), float32(p.Beta),
		float32(p.Stabiliser)))
}
