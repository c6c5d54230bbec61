package attribute

import (
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// LeGradParams are the parameters of [LeGrad].
type LeGradParams struct {
	Common
	Balanced
	Start int `yaml:"start" doc:"the first block that counts, from 0; -1 is the last one, -2 that before it" min:"-1000" max:"1000"`
}

// LeGrad is how sensitive what a block answers is to its attention.
var LeGrad = attentionMethod(stages.Def[LeGradParams]{
	Name: "attribute/legrad",
	Doc: `how each block's own answer changes with its attention

The score of block b is that of the model's head, final normalisation included, for the
mean of the block's tokens: s_b = head(norm(mean of tokens)). E_b = mean over heads and
queries of max(∂s_b/∂A_b, 0), the attention A_b itself isn't multiplied in. The map is the
mean of E_b at the patches over the blocks, enlarged bilinearly to the image's size and
stretched to [0,1]; where it is constant it is 0.

A head that pools the tokens by an attention, as SigLIP's, pools those of each block, and
A_b is that attention with its one query. Blocks and head are found in the model's graph;
a head that tells tokens apart before it selects or pools them is refused.

Bousselham et al., "LeGrad: An Explainability Method for Vision Transformers via Feature
Formation Sensitivity", ICCV 2025, section 3.`,
	Version: 1,
	Inputs: imageInputs("its score is the head's for the mean of all tokens, and some of a text's are " +
		"padding"),
	Tolerance: kinks,
	Passes:    stages.Passes{Forward: "1", Backward: "1"},
	Variants: []stages.Variant{{
		Item: "blocks and range", Default: "start: 0",
		Differs: "the authors' code sums over the last two blocks by default (start: -2), torch-cam takes " +
			"the mean over blocks that it is told; the range is [0,1] in both, of the enlarged map in the " +
			"authors' code for CLIP and of the patches in torch-cam",
		Golden: "attention_maps",
	}, {
		Item: "head", Default: "the model's own, its last normalisation included",
		Differs: "the authors' code for CLIP explains a cosine, for which target is an expression; for " +
			"SigLIP it leaves the normalisation out and sets to 0 what an empty text has",
		Golden: "attention_maps",
	}},
	Defaults: LeGradParams{Common: common()},
})

func (p LeGradParams) glance() lower.Glance { return lower.Formation }

func (p LeGradParams) newMap(_ context.Context, _ *stages.Env, n *program.Net,
	a program.Attention) (attentionMap, error) {
	order, err := fromBlock(a, p.Start)
	return func(_, row int, a program.Attention) (stages.Tensor, error) {
		sum := make([]float64, a.Tokens)
		for _, k := range order {
			for i, v := range a.Matrices(k, row) {
				sum[i] += float64(v)
			}
		}
		plane := resized(sum[a.First:][:a.Height*a.Width], a.Height, a.Width, n.Height, n.Width, "bilinear")
		return p.reduced(toUnitRange(plane), 1, n.Height, n.Width), nil
	}, err
}

// fromBlock returns the indices of the blocks from start on, which counts from the end if it is negative.
func fromBlock(a program.Attention, start int) ([]int, error) {
	if start < 0 {
		start += len(a.Blocks)
	}
	if start < 0 {
		return nil, stages.BadField("start", "start %d: the model has %d blocks", start-len(a.Blocks),
			len(a.Blocks))
	}
	return blocks(a, start), startsWithin(a, start)
}

// toUnitRange returns values stretched to [0,1], or zeros if all are equal.
func toUnitRange(values []float64) []float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = math.Min(low, v), math.Max(high, v)
	}
	out := make([]float64, len(values))
	for i, v := range values {
		if high != low {
			out[i] = (v - low) / (high - low)
		}
	}
	return out
}

func (p LeGradParams) emit(m *emission) (out standalone.Numbers, err error) {
	a, err := m.attend(lower.Formation, p.Common, p.Balanced)
	if err != nil {
		return out, err
	}
	order, err := fromBlock(program.Attention{Attention: a.Attention}, p.Start)
	if err != nil {
		return out, err
	}
	sum := m.Number(0)
	for _, k := range order {
		sum = sum.Plus(m.Double(a.in.Output(fmt.Sprintf("block%d", k))))
	}
	return a.oneChannel(p.Common, a.enlarged(sum).Stretched()), nil
}
