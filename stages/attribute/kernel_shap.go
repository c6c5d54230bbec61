package attribute

import (
	"math"

	"github.com/runexp/runexp/stages"
)

// KernelSHAPParams are the parameters of [KernelSHAP].
type KernelSHAPParams struct {
	Replaced
	Draw    string `yaml:"draw" doc:"subsets of a number of units that is drawn by the weights of the Shapley kernel" choices:"shapley"`
	Samples int    `yaml:"samples" doc:"how many subsets are drawn, with paired so many pairs; 0: two for each unit, at least 200" min:"0" max:"1000000"`
	Paired  bool   `yaml:"paired" doc:"whether each subset is followed by its complement"`
}

// KernelSHAP is the estimate of Shapley values by linear regression.
var KernelSHAP = solvingMethod(fitted(stages.Def[KernelSHAPParams]{
	Name: "attribute/kernel-shap",
	Doc: `a regression on random subsets that has Shapley values

Images with random units replaced are shown to the model: k of M units with a probability
in proportion to (M − 1)/(k·(M − k)), as the Shapley kernel weighs them. The value of a
unit is its coefficient in the linear model that fits the responses best, of those whose
coefficients sum to the output for the image minus that for the substrate. Each subset
comes with its complement, which cancels the interactions of pairs. The passes are those
of perturb/subset, 2·samples + 2. Lundberg and Lee, "A Unified Approach to Interpreting
Model Predictions", NeurIPS 2017, section 4.1.`,
	Version: 1,
	Variants: []stages.Variant{{
		Item: "sum of the values", Default: "exact",
		Differs: "captum gives the two ends a weight of 1e6, so that their sum is off by about 1e-6 of it",
		Golden:  "kernel_shap",
	}, {
		Item: "subsets", Default: "samples: 0, two pairs for each unit, at least 200",
		Differs: "captum draws 25 without complements, where a map of more units isn't determined and its " +
			"solver returns the smallest; shap counts small sizes off before it draws, 2·M + 2048 in all, " +
			"and keeps 10 units by default",
	}},
	Declares: func(p KernelSHAPParams, in map[string]stages.Declared) stages.Declared {
		return p.declared(true, in)
	},
	Defaults: KernelSHAPParams{Replaced: replaced(), Draw: "shapley", Paired: true},
}))

func (p KernelSHAPParams) draw() string { return p.Draw }

func (p KernelSHAPParams) solve(g game) (values []float64, fit float64) {
	n := newNormal(g.Units)
	var shown []int
	for row, y := range g.responses {
		shown = g.shown(row, shown[:0])
		n.add(shown, 1, y-g.hidden)
	}
	if values = n.constrained(g.image - g.hidden); values == nil {
		return nil, math.NaN()
	}
	var d deviation
	for row, y := range g.responses {
		d.add(1, y, g.image-g.Sum(row, values))
	}
	return values, d.explained()
}
