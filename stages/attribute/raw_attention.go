package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
)

// RawAttentionParams are the parameters of [RawAttention].
type RawAttentionParams struct{ Common }

// RawAttention is the attention of the last block.
var RawAttention = classFreeMethod(stages.Def[RawAttentionParams]{
	Name: "attribute/raw-attention",
	Doc: `where the class token looks in a transformer's last block

The row of the class token of A = softmax(QKᵀ/√d), the mean over the heads, at the
patches, enlarged bilinearly to the image's size; also called last-layer attention. It is
the same for all classes. Where the output is read from several tokens, such as all of
them averaged, it is the mean of their rows. Blocks, heads, patches and class token are
found in the model's graph. Attention within windows, as Swin's, has no row that covers
the image, and is refused.

The baseline of Chefer, Gur and Wolf, "Transformer Interpretability Beyond Attention
Visualization", CVPR 2021, section 4.`,
	Version:  1,
	Passes:   stages.Passes{Forward: "1"},
	Defaults: RawAttentionParams{Common: common()},
})

func (p RawAttentionParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	a, err := n.Attention(ctx, e.Slot, lower.Heads, false, n.Fit(e.Len(), e.Batch))
	if err != nil {
		return err
	}
	return p.runAttention(ctx, e, n, a, nil, func(_, row int, a program.Attention) (stages.Tensor, error) {
		return p.patches(n, a, readRows(a, a.Matrices(len(a.Blocks)-1, row))), nil
	})
}
