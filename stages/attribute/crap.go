package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
)

// CRAPParams are the parameters of [CRAP].
type CRAPParams struct {
	RAPParams
	Contrast string `yaml:"contrast" doc:"a pass from the class minus one from all others, each of which counts 1/(N−1) of N classes; or one pass that starts with 1 and −1/N" choices:"two-passes|single-pass"`
}

// Validate refuses targets that can't be contrasted with other classes.
func (p CRAPParams) Validate() error {
	if err := p.oneClass(); err != nil {
		return err
	}
	return p.RAPParams.Validate()
}

// CRAP is contrastive relative attributing propagation.
var CRAP = propagationMethod(stages.Def[CRAPParams]{
	Name: "attribute/crap",
	Doc: `attribute/rap of a class compared with all others

Relative attributing propagation from the explained class, minus that from the other
classes in equal parts, as contrastive layer-wise relevance does it (Gu, Yang and Tresp,
ACCV 2018). Vukadin et al., "Advancing Attribution-Based Neural Network Explainability
through Relative Absolute Magnitude Layer-Wise Relevance Propagation", ACM TIST 2024, name
it and publish no code.`,
	Version:   1,
	Tolerance: quotientTolerance,
	Passes:    stages.Passes{Forward: "1", Backward: "2"},
	Variants: append(rapVariants(), stages.Variant{
		Item: "contrast", Default: "contrast: two-passes",
		Differs: "the paper's section 3.1 starts with 1 and −1/N in a single pass (contrast: single-pass), " +
			"which is not the same, as the rules treat relevance of either sign differently",
		Golden: "rap",
	}),
	Defaults: CRAPParams{RAPParams{Tapped: tapped(), Variant: "official"}, "two-passes"},
})

func (p CRAPParams) propagation(n *program.Net) propagation {
	starts := []passStart{{name: "target", counts: against(1, 0)}, {
		// The result has the magnitude of the first pass here, and so float32 the same digits.
		name:   "others",
		counts: against(0, 1),
		factor: passFactor{times: -1 / float64(n.PerHead()-1)},
	}}
	if p.Contrast == "single-pass" {
		starts = []passStart{{name: "target against others", counts: against(1, -1/float64(n.PerHead()))}}
	}
	return propagation{rules: p.policy(), start: lower.StartOnes, starts: starts}
}
