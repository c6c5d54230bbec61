package attribute

import (
	"context"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// GradECLIPParams are the parameters of [GradECLIP].
type GradECLIPParams struct {
	Common
	Balanced
}

// GradECLIP weights the values of the last attention by gradients and by how queries and keys agree.
var GradECLIP = attentionMethod(stages.Def[GradECLIPParams]{
	Name: "attribute/grad-eclip",
	Doc: `values of the last attention, by gradient and similarity

At patch p the map is max(λ_p · Σ_c g_c·v_p,c, 0): v_p are the values of the last block's
attention, over the channels c of all heads, and g is the derivative of the explained
output with respect to that attention's output at the class token, before it is projected.
λ_p is the cosine between the query of the class token and the key of the patch, over the
channels of all heads, stretched to [0,1] over the patches: it stands for the softmax,
which is too sparse. Where the output is read from several tokens the map is the mean of
theirs; a head that pools the tokens by an attention has its own query, keys and values.
It is enlarged bilinearly to the image's size.

Zhao et al., "Gradient-based Visual Explanation for Transformer-based CLIP",
ICML 2024, section 3.`,
	Version: 1,
	Inputs:  imageInputs("the authors' rule for texts sums over several blocks"),
	Passes:  stages.Passes{Forward: "1", Backward: "1"},
	Variants: []stages.Variant{{
		Item: "heads, queries and keys", Default: "the model's own",
		Differs: "the authors' code for CLIP runs the last block again with a single head, so that it " +
			"explains another output, and takes the cosine of queries and keys that the output's " +
			"projection went over; that for ViT has the single head without the projection",
		Golden: "attention_maps",
	}},
	Tolerance: kinks,
	Defaults:  GradECLIPParams{Common: common()},
})

func (p GradECLIPParams) glance() lower.Glance { return lower.Aligned }

func (p GradECLIPParams) newMap(_ context.Context, _ *stages.Env, n *program.Net,
	_ program.Attention) (attentionMap, error) {
	return func(_, row int, a program.Attention) (stages.Tensor, error) {
		slope, queries, keys := a.Aligned(row)
		rows := make(tokens, 0, len(a.Asking()))
		for _, q := range a.Asking() {
			out := make([]float64, a.Tokens)
			similar := toUnitRange(cosines(a, queries, keys, q))
			for k, s := range similar {
				out[a.First+k] = math.Max(s*float64(slope[q*a.Tokens+a.First+k]), 0)
			}
			rows = append(rows, out)
		}
		return p.patches(n, a, rows), nil
	}, nil
}

// cosines returns the cosine between query q and the key of each patch, over the channels of all heads, given
// queries [heads, Q, d] and keys [heads, d, T].
func cosines(a program.Attention, queries, keys []float32, q int) []float64 {
	heads, patches := a.Heads(), a.Height*a.Width
	d := len(keys) / (heads * a.Tokens)
	asked := len(queries) / (heads * d)
	out, keyed, own := make([]float64, patches), make([]float64, patches), 0.0
	for h := range heads {
		for c := range d {
			x := float64(queries[(h*asked+q)*d+c])
			own += x * x
			for p, v := range keys[(h*d+c)*a.Tokens+a.First:][:patches] {
				out[p] += float64(x * float64(v))
				keyed[p] += float64(float64(v) * float64(v))
			}
		}
	}
	for p := range out {
		out[p] /= math.Sqrt(own) * math.Sqrt(keyed[p])
	}
	return out
}

func (p GradECLIPParams) emit(m *emission) (out standalone.Numbers, err error) {
	a, err := m.attend(lower.Aligned, p.Common, p.Balanced)
	if err != nil {
		return out, err
	}
	asking, patches := a.Asking(), a.Height*a.Width
	queries := m.Double(a.in.Output("queries")).Rows(2, asking...)
	keys := m.Double(a.in.Output("keys")).Slice(3, a.First, a.First+patches)
	slope := m.Double(a.in.Output("block0")).Rows(1, asking...).Slice(2, a.First, a.First+patches)
	squares := func(x standalone.Numbers, axis int) standalone.Numbers {
		return x.Times(x).KeepSum(1, axis).Sum(1).Sqrt()
	}
	cosine := queries.MatMul(keys).Sum(1).Over(squares(queries, 3)).Over(squares(keys, 2))
	rows := m.Batch * len(asking)
	similar := cosine.Reshape(rows, patches).Stretched().Reshape(m.Batch, len(asking), patches)
	return a.oneChannel(p.Common, a.plane(slope.Times(similar).Relu().KeepMean(1))), nil
}
