package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// AttnLRPParams are the parameters of [AttnLRP] and [CPLRP].
type AttnLRPParams struct {
	Tapped
	ConvGamma   float64 `yaml:"conv_gamma" doc:"γ of Conv layers; 0: the derivative" min:"0" max:"1000000"`
	LinearGamma float64 `yaml:"linear_gamma" doc:"γ of linear layers; 0: the derivative" min:"0" max:"1000000"`
	Projections string  `yaml:"projections" doc:"the rule of the linear layers of attention, which make queries, keys and values and read the weighted values: that of other linear layers, or the derivative" choices:"gamma|derivative"`
	Stabiliser  float64 `yaml:"stabiliser" doc:"added to the magnitude of denominators of the γ-rule" min:"0" max:"1000"`
}

func attnLRP() AttnLRPParams {
	return AttnLRPParams{Tapped: tapped(), ConvGamma: 0.25, LinearGamma: 0.05, Projections: "gamma",
		Stabiliser: 1e-6}
}

// attnLRPVariants are where the two differ from the authors' code.
func attnLRPVariants() []stages.Variant {
	return []stages.Variant{{
		Item: "γ", Default: "conv_gamma: 0.25, linear_gamma: 0.05",
		Differs: "the authors' example takes 0.1, 0.25 and 100 for Conv layers, each with 0, 0.01, 0.05, " +
			"0.1 and 1 for linear ones, and chooses none",
		Golden: "attn_lrp.json",
	}, {
		Item: "linear layers of attention", Default: "projections: gamma",
		Differs: "their code finds modules, and torchvision's attention has its weights without any: " +
			"there these layers have the derivative (projections: derivative)",
		Golden: "attn_lrp.json",
	}}
}

// AttnLRP is layer-wise relevance of attention, softmax included.
var AttnLRP = backwardMethod(stages.Def[AttnLRPParams]{
	Name: "attribute/attn-lrp",
	Doc: `layer-wise relevance for transformers, also through softmax

The normalised image times a gradient of the net in which the deviations of norms are
constants, activations have the slope y/x, and either factor of a product of two values
gets half, also queries, keys and values; layers with weights follow the γ-rule. Achtibat
et al., "AttnLRP: Attention-Aware Layer-Wise Relevance Propagation for Transformers", ICML
2024, section 3. For vision transformers the authors' code doesn't propagate through
softmax: attribute/cp-lrp.`,
	Version:   1,
	Tolerance: kinks,
	Variants:  attnLRPVariants(),
	Declares: func(p AttnLRPParams, _ map[string]stages.Declared) stages.Declared {
		return p.declares(contributionMap, "")
	},
	Defaults: attnLRP(),
})

func (p AttnLRPParams) backwardPasses(ctx context.Context, e *stages.Env,
	n *program.Net) ([]backwardPass, error) {
	return p.passOf(ctx, e, n, relevance.AttnLRP())
}

// passOf returns the pass of a balance with the γ-rule.
func (p AttnLRPParams) passOf(ctx context.Context, e *stages.Env, n *program.Net,
	b relevance.Balance) ([]backwardPass, error) {
	rules := relevance.LayerRules{Projections: p.Projections == "gamma"}
	if p.ConvGamma > 0 {
		rules.Conv = relevance.Gamma(float32(p.ConvGamma), float32(p.Stabiliser))
	}
	if p.LinearGamma > 0 {
		rules.Dense = relevance.Gamma(float32(p.LinearGamma), float32(p.Stabiliser))
	}
	return p.onePass(ctx, e, n, b.PolicyWith(rules))
}

func (p AttnLRPParams) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	return p.putProduct(e, i, n, results[0])
}
