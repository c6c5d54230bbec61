package attribute

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
)

// AttentionRolloutParams are the parameters of [AttentionRollout].
type AttentionRolloutParams struct {
	Common
	Normalise bool   `yaml:"normalise" doc:"divide each row of I + A by its sum"`
	Order     string `yaml:"order" doc:"which block's matrix stands on the left of the product" choices:"last-first|first-last"`
	Start     int    `yaml:"start" doc:"the first block that counts, from 0" min:"0" max:"1000"`
}

// AttentionRollout multiplies the attention of all blocks.
var AttentionRollout = plainAttentionMethod(stages.Def[AttentionRolloutParams]{
	Name: "attribute/attention-rollout",
	Doc: `a transformer's attention, multiplied through its blocks

Attention tells which tokens a block mixes; where a token of the last block comes from,
the product over the blocks does: Â_b = I + A_b, I for the residual connection and A_b the
mean over heads, each row divided by its sum, and R = Â_B ⋯ Â₂·Â₁. The map is R's row of the
class token at the patches, enlarged bilinearly to the image's size, and the same for all
classes. Where the output is read from several tokens it is the mean of their rows.

Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020, section 3.`,
	Version: 1,
	Passes:  stages.Passes{Forward: "1"},
	Variants: []stages.Variant{{
		Item: "rows and order", Default: "normalise: true, order: last-first",
		Differs: "equation 6 of the absLRP paper has neither the division (normalise: false) nor this " +
			"order (order: first-last); the code of Chefer et al. divides for rollout and not for its own " +
			"method",
		Golden: "vit_attention",
	}},
	Defaults: AttentionRolloutParams{Common: common(), Normalise: true, Order: "last-first"},
})

func (p AttentionRolloutParams) glance() lower.Glance { return lower.Heads }

func (p AttentionRolloutParams) newMap(_ context.Context, _ *stages.Env, n *program.Net,
	a program.Attention) (attentionMap, error) {
	order := blocks(a, p.Start)
	if p.Order == "first-last" {
		slices.Reverse(order)
	}
	return func(_, row int, a program.Attention) (stages.Tensor, error) {
		rows := unitRows(a)
		for _, k := range order {
			matrix := a.Matrices(k, row)
			if p.Normalise {
				rows = rows.perSum(matrix)
			}
			rows = rows.times(matrix, 1)
		}
		return p.patches(n, a, rows), nil
	}, startsWithin(a, p.Start)
}

// perSum returns the rows with each number divided by the sum of the row of I + matrix that it is multiplied
// by.
func (r tokens) perSum(matrix []float32) tokens {
	out := make(tokens, len(r))
	for k, row := range r {
		t := len(row)
		out[k] = make([]float64, t)
		for i, v := range row {
			sum := 1.0
			for _, a := range matrix[i*t : (i+1)*t] {
				sum += float64(a)
			}
			out[k][i] = v / sum
		}
	}
	return out
}
