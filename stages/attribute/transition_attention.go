package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
)

// TransitionAttentionParams are the parameters of [TransitionAttention].
type TransitionAttentionParams struct {
	Common
	Balanced
	Steps int `yaml:"steps" doc:"how many scaled images derivatives are averaged over; 1 takes that of the image alone" min:"1" max:"10000"`
	Start int `yaml:"start" doc:"the first block whose transitions count, from 0; from the last one there are none" min:"0" max:"1000"`
}

// TransitionAttention weights attention, as a Markov chain, by integrated gradients.
var TransitionAttention = attentionMethod(stages.Def[TransitionAttentionParams]{
	Name: "attribute/transition-attention",
	Doc: `attention as a Markov chain, weighted by gradients

The state begins as the class token's row of the last block's attention, the mean over
heads, and propagates backward through the blocks before it: s ← s·A_b + s, down to
block start. The map is s·W at the patches, where W = mean over heads of max(1/n·Σₖ ∂f(αₖx)/∂A_B, 0) in the same row,
A_B the last block's attention and αₖ = k/(n−1) for n steps: the image grows out of zero, the
mean colour. It is enlarged bilinearly to the image's size. Where the output is read from
several tokens it is the mean of what each gives.

Yuan, Li, Xiong, Cao and Dou, "Explaining Information Flow Inside Vision Transformers
Using Markov Chain", NeurIPS 2021 workshop, equations 6 to 9.`,
	Version: 1,
	Passes:  stages.Passes{Forward: "steps + 1", Backward: "steps"},
	Variants: []stages.Variant{{
		Item: "first block", Default: "start: 0, steps: 20",
		Differs: "what the MAS paper takes; the authors' code begins with block 4 of 12 by default " +
			"(start: 4)",
		Golden: "vit_attention",
	}},
	Defaults: TransitionAttentionParams{Common: common(), Steps: 20},
})

func (p TransitionAttentionParams) glance() lower.Glance { return lower.Heads }

func (p TransitionAttentionParams) newMap(ctx context.Context, e *stages.Env, n *program.Net,
	a program.Attention) (attentionMap, error) {
	if err := startsWithin(a, p.Start); err != nil {
		return nil, err
	}
	q, err := p.atImage(ctx, e, n, p.Common)
	if err != nil {
		return nil, err
	}
	d, err := n.Attention(ctx, e.Slot, lower.Slopes, q, n.Fit(p.Steps, e.Batch))
	if err != nil {
		return nil, err
	}
	x, err := p.scaled(ctx, e, n, d)
	return func(i, row int, a program.Attention) (stages.Tensor, error) {
		t, err := p.target(e, i, n)
		if err != nil {
			return stages.Tensor{}, err
		}
		last := len(a.Blocks) - 1
		rows := readRows(a, a.Matrices(last, row))
		for k := last - 1; k >= p.Start; k-- {
			rows = rows.times(a.Matrices(k, row), 1)
		}
		weights, err := p.integrated(ctx, d, t, a.Read, func(k int, alpha float32) { x(i, k, alpha) })
		if err != nil {
			return stages.Tensor{}, err
		}
		for k, row := range rows {
			for j := range row {
				row[j] *= weights[k][j]
			}
		}
		return p.patches(n, a, rows), nil
	}, err
}

// scaled returns what sets a row of d to the image of item i, times alpha. Of a text, the embedding grows.
func (p TransitionAttentionParams) scaled(ctx context.Context, e *stages.Env, n *program.Net,
	d program.Attention) (func(i, row int, alpha float32), error) {
	if n.Text == nil {
		images, err := normalised("images", e, n)
		return func(i, row int, alpha float32) {
			to := d.Image(row)
			for j, v := range images[i] {
				to[j] = alpha * v
			}
		}, err
	}
	x, err := Tapped{p.Common, "image"}.ends(ctx, e, n, "zero")
	return func(i, row int, alpha float32) {
		copy(d.Image(row), x.images[i])
		between(x.from.of(i), x.to[i], float64(alpha), d.Embedding(row))
	}, err
}

// integrated returns the rows of W that belong to the tokens the output is read from; set sets a row to the
// scaled image.
func (p TransitionAttentionParams) integrated(ctx context.Context, d program.Attention, t program.Target,
	read []int, set func(row int, alpha float32)) (tokens, error) {
	var sum []float64 // [heads, T, T]
	alphas := p.alphas()
	for from := 0; from < p.Steps; from += d.Batch {
		to := min(from+d.Batch, p.Steps)
		for k := from; k < to; k++ {
			d.Explain(k-from, t)
			set(k-from, float32(alphas[k]))
		}
		if err := d.Run(ctx); err != nil {
			return nil, err
		}
		for k := from; k < to; k++ {
			slope := d.Matrices(0, k-from)
			if sum == nil {
				sum = make([]float64, len(slope))
			}
			for j, g := range slope {
				sum[j] += float64(g)
			}
		}
	}
	square := d.Tokens * d.Tokens
	heads := len(sum) / square
	out := make(tokens, len(read))
	for k, token := range read {
		out[k] = make([]float64, d.Tokens)
		for j := range d.Tokens {
			for h := range heads {
				out[k][j] += max(sum[h*square+token*d.Tokens+j]/float64(p.Steps), 0) / float64(heads)
			}
		}
	}
	return out, nil
}

// alphas returns the factors of the scaled images.
func (p TransitionAttentionParams) alphas() []float64 {
	out := make([]float64, p.Steps)
	for k := range out {
		if out[k] = 1; p.Steps > 1 {
			out[k] = float64(k) / float64(p.Steps-1)
		}
	}
	return out
}
