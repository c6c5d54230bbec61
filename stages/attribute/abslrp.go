package attribute

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// AbsLRPParams are the parameters of [AbsLRP].
type AbsLRPParams struct {
	Tapped
	Variant  string `yaml:"variant" doc:"paper is its text; official the authors' code of December 2024, official-2024-01 that of January 2024" choices:"paper|official|official-2024-01"`
	Contrast string `yaml:"contrast" doc:"what the target is contrasted with: all other classes, in one pass that starts with -1/N there or in a pass of their own that is subtracted; nothing; what the variant has; or that, but two passes under variant paper for fewer than 100 classes and for attention" choices:"auto|variant|single-pass|two-passes|none"`
	MaxPool  string `yaml:"max_pool" doc:"whether relevance at a max-pool is divided by its output or multiplied by the largest element; auto multiplies under variant official where the model adds no branches, as for VGG" choices:"auto|divide|multiply"`
	Ablation string `yaml:"ablation" doc:"the studies of section 4.2: a map of patches instead of pixels, or in attention only values, or only queries and keys, pass relevance on" choices:"none|patch|values-only|queries-keys-only"`
}

// Validate refuses outputs other than class scores, and patches at an inner layer.
func (p AbsLRPParams) Validate() error {
	switch {
	case p.Output != "logit":
		return stages.BadField("output", "output %s: relevance starts at the class scores, output logit",
			p.Output)
	case p.Ablation == "patch" && p.Layer != "input":
		return stages.BadField("layer",
			"layer %s: ablation patch makes its map at the patch embedding, layer input", p.Layer)
	case p.Ablation == "patch" && p.Reduce == "none":
		return stages.BadField("reduce",
			"reduce none keeps the channels of the image, and patches have channels of their own")
	}
	return p.Tapped.Validate()
}

// AbsLRP is relative absolute magnitude propagation.
var AbsLRP = backwardMethod(stages.Def[AbsLRPParams]{
	Name: "attribute/abslrp",
	Doc: `positive shares relative to each neuron's magnitude

Relevance goes backwards from the class scores, layer by layer: an input x of a
neuron h = Σ x·w + b gets (x·w)⁺ / (|h| + 1e-9) of the neuron's relevance. The target
starts with 1 and every other class of N with -1/N, or, with contrast two-passes, the
map of all others is subtracted from that of the target. Other operators have the paper's
algorithm 1, which is that equation for a derivative; sums, such as residual
connections, and products of two values, such as attention, have it for either
operand; normalisations and softmax take their statistics and denominators for
constants. Vukadin, Afrić, Šilić and Delač, "Advancing Attribution-Based Neural Network
Explainability through Relative Absolute Magnitude Layer-Wise Relevance Propagation and
Multi-Component Evaluation", ACM TIST 2024, equation 12 and section 3.1.

Under variant paper a map has the scale at which its magnitudes, or with two passes
those of either pass, sum to 1: the equation lets relevance grow without bounds in deep
models, which changes nothing else. Under the official variants a map is what their code
has before its last division by the largest magnitude.

In one pass a class whose score is near 0 weighs much, as its relevance is divided by
that. With few classes, and on transformers, such maps often have nothing positive, which
is warned of. So the default, contrast auto, has two passes, which count both sides
alike, under 100 classes and for models with attention; the authors' code has two passes
for transformers from the start, and for all models since December 2024.

Models of any operators are explained. If the batch axis of a value is unknown, the
official variants, which scale or conserve relevance image by image, return an error.`,
	Version:   3,
	Tolerance: kinks,
	Passes:    stages.Passes{Forward: "1", Backward: "≤ 2"},
	Variants:  absLRPVariants(),
	Defaults: AbsLRPParams{Tapped: tapped(), Variant: "paper", Contrast: "auto", MaxPool: "auto",
		Ablation: "none"},
})

func absLRPVariants() []stages.Variant {
	item := func(what, paper, codes string) stages.Variant {
		return stages.Variant{Item: what, Default: paper, Differs: codes, Golden: "abslrp"}
	}
	return []stages.Variant{
		item("scale", "variant: paper, no normalisation within the model",
			"official scales what every module gives to each of its inputs to the sum of magnitudes 1, so "+
				"that the branches of a block count the same whatever their size; official-2024-01 "+
				"propagates positive and negative relevance apart and keeps the sum of either at every "+
				"module, sharing it between two inputs in the ratio of their sums"),
		item("contrast", "contrast: variant, one pass from 1 and -1/N; contrast: auto, two passes for fewer "+
			"than 100 classes and for attention",
			"official, and official-2024-01 for models with attention: one pass from the target minus one "+
				"from all other classes, each of magnitude 1; official-2024-01 otherwise: one pass from 1 "+
				"and -1/1000, here -1/N"),
		item("residual connections", "variant: paper, equation 12 for either summand",
			"official gives a shortcut that is the block's input itself the total derivative, through both "+
				"summands"),
		item("BatchNormalization", "variant: paper, two layers, standardisation and scale with shift",
			"official has one layer; official-2024-01 two, as the paper"),
		item("LayerNormalization", "variant: paper, two layers, standardisation and scale with shift",
			"official has one, with the statistics of the magnitudes in the magnitude's half of algorithm "+
				"1; official-2024-01 one, with |x - mean| there"),
		item("softmax and activations", "variant: paper, algorithm 1",
			"official-2024-01 takes the magnitude of the output for the output at the magnitudes"),
		item("max-pooling", "max_pool: auto, divided by the output",
			"official doesn't divide in VGG, which multiplies relevance by the activation; in ResNet it "+
				"divides"),
		item("modules that compute nothing", "variant: paper, relevance passes",
			"official deletes relevance at negative values behind an activation that a linear layer reads "+
				"(Dropout) and where the class token is picked; official-2024-01 does so where the class "+
				"token is picked, at heads, and where the class token is concatenated to the patches, which "+
				"get its relevance"),
		item("queries, keys and values", "variant: paper, the layer that the model has",
			"official-2024-01 has a layer for each of the three, which keep their sums"),
	}
}

func (p AbsLRPParams) backwardPasses(ctx context.Context, e *stages.Env,
	n *program.Net) ([]backwardPass, error) {
	rules := relevance.AbsLRP{Variant: relevance.AbsLRPVariant(p.Variant),
		MaxPool: relevance.MaxPoolRule(p.MaxPool), Ablation: relevance.Ablation(p.Ablation)}
	if p.Ablation == "patch" {
		rules.Ablation = relevance.AblationNone
	}
	q, err := p.question(ctx, e, n, rules.Policy())
	if err != nil {
		return nil, err
	}
	attention, patches, err := n.Patches(ctx, e.Slot)
	if err != nil {
		return nil, err
	}
	switch {
	case p.Ablation == "patch":
		if q.Layer = patches; q.Layer == "" {
			return nil, stages.BadField("ablation", "ablation patch: the model has no patch embedding, a "+
				"Conv that reads the image in windows side by side; ablation none fits any model")
		}
	case p.Ablation != "none" && !attention:
		return nil, stages.BadField("ablation", "ablation %s: the model has no attention, values "+
			"multiplied by a softmax; ablation none fits any model", p.Ablation)
	}
	starts := p.starts(n.Classes, attention)
	if n.Head != nil {
		if starts, err = p.startsOfExpression(); err != nil {
			return nil, err
		}
	}
	return backwardPass{Common: p.Common, question: q}.from(starts), nil
}

// combine puts the map of item i; at the patch embedding all pixels of a patch have its score.
func (p AbsLRPParams) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	values := summed(results)
	if slices.Max(values) <= 0 {
		why := ""
		if len(results) == 1 && p.Contrast != "none" {
			why = ": classes whose score is near 0 outweigh the target; contrast: two-passes counts both " +
				"sides alike"
		}
		e.WarnItem(i, "nothing of its map is positive%s", why)
	}
	if p.Ablation != "patch" {
		return p.put(e, i, n, values, results[0].Shape)
	}
	at, err := p.planesOf(n, values, results[0].Shape)
	if err != nil {
		return fmt.Errorf("ablation patch: %w", err)
	}
	p.putPlane(e, i, n, p.flat(at.values, at.pixels()), at, "nearest")
	return nil
}

func (p AbsLRPParams) emit(m *emission) (out standalone.Numbers, err error) {
	results, err := m.backward(p)
	if err != nil {
		return out, err
	}
	values := m.summed(results)
	if p.Ablation != "patch" {
		return m.put(p.Tapped, values)
	}
	at, err := m.planes(p.Tapped, values)
	if err != nil {
		return out, fmt.Errorf("ablation patch: %w", err)
	}
	return m.putPlane(p.Tapped, reduction(p.Reduce, at), "nearest"), nil
}
