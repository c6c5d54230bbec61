package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// LRPGammaParams are the parameters of [LRPGamma].
type LRPGammaParams struct {
	Relevant
	FirstLayer
	Gamma float64 `yaml:"gamma" doc:"how much more counts what has the sign of a layer's output" min:"0" max:"1000000"`
}

// LRPGamma is LRP by the γ-rule.
var LRPGamma = conservingMethod(stages.Def[LRPGammaParams]{
	Name: "attribute/lrp-gamma",
	Doc: `layer-wise relevance by the γ-rule

As attribute/lrp-epsilon, where inputs share what an output zⱼ > 0 has by xᵢwᵢⱼ +
γ·(xᵢwᵢⱼ)⁺, and what one < 0 has by xᵢwᵢⱼ + γ·(xᵢwᵢⱼ)⁻: γ = 0 is LRP-0, a large γ the z⁺-rule.
Montavon et al., "Layer-Wise Relevance Propagation: An Overview", 2019, section 10.2.3,
with the signs of Zennit for data and outputs below 0.`,
	Version:   1,
	Tolerance: kinks,
	Variants: []stages.Variant{{
		Item: "signs", Default: "those of Zennit",
		Differs: "the paper's rule is for data that isn't negative, and takes γ·w⁺ for outputs of either " +
			"sign; Zennit distinguishes the signs of data and outputs, as here",
		Golden: "zennit_lrp",
	}},
	Defaults: LRPGammaParams{Relevant: relevant(), FirstLayer: FirstLayer{"same"}, Gamma: 0.25},
})

func (p LRPGammaParams) propagation(n *program.Net) propagation {
	return p.oneRule(n, p.FirstLayer, relevance.Gamma(float32(p.Gamma), float32(p.Stabiliser)))
}
