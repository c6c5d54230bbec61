package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// CPLRPParams are the parameters of [CPLRP].
type CPLRPParams struct{ AttnLRPParams }

// CPLRP is layer-wise relevance of attention whose weights are constants.
var CPLRP = backwardMethod(stages.Def[CPLRPParams]{
	Name: "attribute/cp-lrp",
	Doc: `layer-wise relevance for transformers, constant attention

As attribute/attn-lrp, where nothing is propagated through softmax, so that values get all
of what attention returns: conservative propagation within attention and AttnLRP outside,
which the authors of AttnLRP take for vision transformers. Ali et al., "XAI for
Transformers: Better Explanations through Conservative Propagation", ICML 2022, section 4;
Achtibat et al., "AttnLRP: Attention-Aware Layer-Wise Relevance Propagation for
Transformers", ICML 2024.`,
	Version:   1,
	Tolerance: kinks,
	Variants: append(attnLRPVariants(), stages.Variant{
		Item: "gated products", Default: "half for each factor, as in attribute/attn-lrp",
		Differs: "the authors' code for language models stops at the gate, so that the other factor gets " +
			"all; it has no vision net with such products",
	}),
	Declares: func(p CPLRPParams, _ map[string]stages.Declared) stages.Declared {
		return p.declares(contributionMap, "")
	},
	Defaults: CPLRPParams{attnLRP()},
})

func (p CPLRPParams) backwardPasses(ctx context.Context, e *stages.Env,
	n *program.Net) ([]backwardPass, error) {
	return p.passOf(ctx, e, n, relevance.Balanced())
}
