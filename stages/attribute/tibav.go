package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
)

// TIBAVParams are the parameters of [TIBAV].
type TIBAVParams struct {
	Common
	Balanced
	Form  string `yaml:"form" doc:"the map that relevance makes: attribution, weighted by gradients and multiplied through the blocks; rollout, the same without gradients; last-layer, of the last block's attention alone; full, carried on to the pixels" choices:"attribution|rollout|last-layer|full"`
	Start int    `yaml:"start" doc:"the first block that counts in an attribution or a rollout, from 0" min:"0" max:"1000"`
}

// Validate refuses probabilities, and a first block for forms that don't multiply blocks.
func (p TIBAVParams) Validate() error {
	if p.Start > 0 && (p.Form == "last-layer" || p.Form == "full") {
		return stages.BadField("start", "start %d: form %s doesn't multiply blocks", p.Start, p.Form)
	}
	if !p.plain() && p.Form != "attribution" {
		return stages.BadField("backward", "form %s takes no gradients", p.Form)
	}
	if p.Output != "logit" {
		return stages.BadField("output", "output %s: relevance begins as 1 at the explained class's logit",
			p.Output)
	}
	return p.Common.Validate()
}

// TIBAV is transformer interpretability beyond attention visualization.
var TIBAV = attentionMethod(stages.Def[TIBAVParams]{
	Name: "attribute/tibav",
	Doc: `attention weighted by its relevance and its gradient

For each block Ā_b = I + mean over heads of max(∇A_b ⊙ R_b, 0), with the derivative ∇A_b of the
explained output and the relevance R_b of the attention; then C = Ā_B ⋯ Ā₂·Ā₁. The map is C's row
of the class token at the patches, enlarged bilinearly to the image's size. Where the
output is read from several tokens it is the mean of their rows. Chefer, Gur and Wolf,
"Transformer Interpretability Beyond Attention Visualization", CVPR 2021, equations 13
and 14.

The other forms are what the paper compares with: rollout has max(R_b, 0) in the place of
the product; last-layer is the class token's row of the mean of max(R_B, 0), partial LRP;
full is the relevance of the pixels, LRP, one number a channel before reduce. On that path
the embedding of positions keeps its share, and the class token its own.

Relevance begins as 1 at the class and flows through linear maps by the positive
products, xᵢ⁺wᵢⱼ⁺ + xᵢ⁻wᵢⱼ⁻, without bias; what a product of attention and values, or of
queries and keys, has is halved between them; residual sums share by their branches'
total relevance (equations 3 to 11, with what the authors' code adds). Convolutions between
blocks, which the authors' models don't have, flow like linear maps; layers that read the
image have the zB-rule, between its least and largest value.`,
	Version:   2,
	Tolerance: quotientTolerance,
	Passes:    stages.Passes{Forward: "1", Backward: "2"},
	Variants: []stages.Variant{{
		Item: "rule and rows", Default: "official",
		Differs: "the absLRP paper says that it compares with LRP-ε of ε = 1e-9; the code has 1e-9 only as " +
			"a guard of divisions. The paper's rule for linear maps and the code agree; rows of Ā aren't " +
			"divided by their sums in either",
		Golden: "vit_attention",
	}},
	Defaults: TIBAVParams{Common: common(), Form: "attribution"},
})

func (p TIBAVParams) newMap(_ context.Context, _ *stages.Env, n *program.Net,
	a program.Attention) (attentionMap, error) {
	return func(_, row int, a program.Attention) (stages.Tensor, error) {
		switch p.Form {
		case "full":
			values, shape := a.Pixels(row)
			if n.Text != nil {
				at := byChannel(doubles(values), shape[0], 0, 1, shape[0])
				return p.reduced(at.values, at.channels, at.height, at.width), nil
			}
			return p.reduced(doubles(values), n.Channels, n.Height, n.Width), nil
		case "last-layer":
			return p.patches(n, a, readRows(a, a.Matrices(0, row))), nil
		}
		return p.patches(n, a, chained(a, p.Start, row)), nil
	}, startsWithin(a, p.Start)
}

// glance returns the matrices that a form needs.
func (p TIBAVParams) glance() lower.Glance {
	switch p.Form {
	case "rollout":
		return lower.Relevances
	case "last-layer":
		return lower.LastRelevance
	case "full":
		return lower.Pixels
	}
	return lower.Weighted
}
