package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// GenericAttentionParams are the parameters of [GenericAttention].
type GenericAttentionParams struct {
	Common
	Balanced
	Start int `yaml:"start" doc:"the first block that counts, from 0; that code's for CLIP begins with the last one" min:"0" max:"1000"`
}

// GenericAttention is the attention of all blocks, weighted by its derivatives.
var GenericAttention = attentionMethod(stages.Def[GenericAttentionParams]{
	Name: "attribute/generic-attention",
	Doc: `attention weighted by its gradient, through all blocks

For each block Ā_b = mean over heads of max(∇A_b ⊙ A_b, 0), with the attention A_b and the
derivative ∇A_b of the explained output; from R = I, R ← R + Ā_b·R block by block. The map is
R's row of the class token at the patches, enlarged bilinearly to the image's size, or at the
tokens of a text. Where the output is read from several tokens it is the mean of their rows.
It is the rule of self-attention alone: models with attention between two inputs have others.

Chefer, Gur and Wolf, "Generic Attention-model Explainability for Interpreting Bi-Modal and
Encoder-Decoder Transformers", ICCV 2021, equations 5 and 6.`,
	Version:   1,
	Tolerance: kinks,
	Passes:    stages.Passes{Forward: "1", Backward: "1"},
	Variants: []stages.Variant{{
		Item: "blocks and range", Default: "start: 0",
		Differs: "the authors' code for CLIP counts the last block alone by default; their notebooks " +
			"stretch maps to [0,1], which changes neither order nor sheets",
		Golden: "attention_maps",
	}},
	Defaults: GenericAttentionParams{Common: common()},
})

func (p GenericAttentionParams) glance() lower.Glance { return lower.Driven }

func (p GenericAttentionParams) newMap(_ context.Context, _ *stages.Env, n *program.Net,
	a program.Attention) (attentionMap, error) {
	return func(_, row int, a program.Attention) (stages.Tensor, error) {
		return p.patches(n, a, chained(a, p.Start, row)), nil
	}, startsWithin(a, p.Start)
}

// chained returns the rows that the output is read from of (I + Ā_B) ⋯ (I + Ā_start), for a row of the batch.
func chained(a program.Attention, start, row int) tokens {
	rows := unitRows(a)
	for _, k := range blocks(a, start) {
		rows = rows.times(a.Matrices(k, row), 1)
	}
	return rows
}

func (p GenericAttentionParams) emit(m *emission) (out standalone.Numbers, err error) {
	a, err := m.attend(lower.Driven, p.Common, p.Balanced)
	if err != nil {
		return out, err
	}
	if err := a.within(p.Start); err != nil {
		return out, err
	}
	rows, err := a.along(a.units(), a.from(p.Start), false)
	if err != nil {
		return out, err
	}
	return a.patches(p.Common, rows), nil
}
