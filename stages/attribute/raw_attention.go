package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
)

// RawAttentionParams are the parameters of [RawAttention].
type RawAttentionParams struct {
	Common
	Block int `yaml:"block" key:"added" doc:"the block, from 0; -1 is the last one, -2 that before it" min:"-1000" max:"1000"`
	Head  int `yaml:"head" key:"added" doc:"the head, from 0; -1 is the mean over all of them" min:"-1" max:"1000"`
}

// RawAttention is the attention of the last block.
var RawAttention = plainAttentionMethod(stages.Def[RawAttentionParams]{
	Name: "attribute/raw-attention",
	Doc: `where the class token looks in a transformer's last block

The row of the class token of A = softmax(QKᵀ/√d), the mean over the heads, at the
patches, enlarged bilinearly to the image's size, or at the tokens of a text; also called
last-layer attention. Another block, and a single head, can be chosen. It is the same for
all classes. Where the output is read from several tokens, such as all of
them averaged, it is the mean of their rows. Blocks, heads, patches and class token are
found in the model's graph. Attention within windows, as Swin's, has no row that covers
the image, and is refused.

The baseline of Chefer, Gur and Wolf, "Transformer Interpretability Beyond Attention
Visualization", CVPR 2021, section 4.`,
	Version:  1,
	Passes:   stages.Passes{Forward: "1"},
	Defaults: RawAttentionParams{Common: common(), Block: -1, Head: -1},
})

func (p RawAttentionParams) glance() lower.Glance {
	if p.Head >= 0 {
		return lower.EachHead
	}
	return lower.Heads
}

func (p RawAttentionParams) newMap(_ context.Context, _ *stages.Env, n *program.Net,
	a program.Attention) (attentionMap, error) {
	block, err := p.blockOf(len(a.Blocks))
	square := a.Tokens * a.Tokens
	return func(_, row int, a program.Attention) (stages.Tensor, error) {
		matrices := a.Matrices(block, row)
		if heads := len(matrices) / square; p.Head >= heads {
			return stages.Tensor{}, stages.BadField("head", "head %d: block %d has %d heads, the first of "+
				"which is 0", p.Head, block, heads)
		}
		return p.patches(n, a, readRows(a, matrices[max(p.Head, 0)*square:])), nil
	}, err
}

// blockOf returns the index of the block among so many.
func (p RawAttentionParams) blockOf(blocks int) (int, error) {
	block := p.Block
	if block < 0 {
		block += blocks
	}
	if block < 0 || block >= blocks {
		return 0, stages.BadField("block", "block %d: the model has %d blocks, the first of which is 0",
			p.Block, blocks)
	}
	return block, nil
}
