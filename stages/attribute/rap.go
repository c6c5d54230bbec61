package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// RAPParams are the parameters of [RAP].
type RAPParams struct {
	Tapped
	Variant string `yaml:"variant" doc:"the authors' code, or the description in the paper on absLRP" choices:"official|paper"`
}

// Validate refuses outputs other than class scores.
func (p RAPParams) Validate() error { return relative(p.Tapped) }

func relative(p Tapped) error {
	if p.Output != "logit" {
		return stages.BadField("output", "output %s: relevance starts at the class scores, output logit",
			p.Output)
	}
	return p.Validate()
}

// policy returns the rules of a variant.
func (p RAPParams) policy() relevance.Policy {
	if p.Variant == "paper" {
		return relevance.RAPPaper().Policy()
	}
	return relevance.RAP().Policy()
}

// RAP is relative attributing propagation.
var RAP = propagationMethod(stages.Def[RAPParams]{
	Name: "attribute/rap",
	Doc: `relevance by magnitude, shifted so that its sum stays

Inputs that speak for and against an output both count as important, and what that adds
to the sum of relevance is taken away again in equal parts from all that got some: what
hardly matters turns negative. The walk begins with the contributions to the explained
class, each with its magnitude, scaled to sum to its logit; it ends with the zB-rule
between the image's least and largest value. Nam, Gur, Choi, Wolf and Lee, "Relative
Attributing Propagation: Interpreting the Comparative Contributions of Individual Units
in Deep Neural Networks", AAAI 2020, equations 4 to 9.

Layers whose input has both signs, as behind other activations than Relu, count either
half with the whole sum, as the authors' code does, so that sums double there.`,
	Version:   1,
	Tolerance: quotientTolerance,
	Variants:  rapVariants(),
	Declares: func(p RAPParams, _ map[string]stages.Declared) stages.Declared {
		return p.declares(contributionMap, "")
	},
	Defaults: RAPParams{Tapped: tapped(), Variant: "official"},
})

func (p RAPParams) propagation(n *program.Net) propagation {
	return propagation{rules: p.policy(), start: lower.StartOnes}
}

func rapVariants() []stages.Variant {
	return []stages.Variant{{
		Item: "the two passes", Default: "variant: official",
		Differs: "the code carries all relevance by positive contributions and adds what negative ones " +
			"would share, with other terms in Conv than in Linear where relevance is negative; Vukadin et " +
			"al. weight the two by their shares of the sum of magnitudes (variant: paper)",
		Golden: "rap",
	}, {
		Item: "BatchNormalization", Default: "passed, as a node of its own",
		Differs: "the code scales with the square of the variance, which cancels, and sets apart a share " +
			"of the bias, which it adds again: relevance passes",
		Golden: "",
	}}
}
