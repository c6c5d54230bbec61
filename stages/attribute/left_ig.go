package attribute

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// LeftIGParams are the parameters of [LeftIG].
type LeftIGParams struct {
	Differentiated
	Steps    int     `yaml:"steps" doc:"number of positions on the path, with both ends" min:"1" max:"100000"`
	Alpha    float64 `yaml:"alpha" doc:"the path ends where the output exceeds this share of its largest value; 1 takes the whole path" min:"0" max:"1"`
	Baseline string  `yaml:"baseline" doc:"where the path begins: zero after normalisation, or a black image; at an inner layer zeros, or its value for a black image; of a text zero embeddings, or the mask or pad token" choices:"zero|black|mask|pad"`
}

// LeftIG is integrated gradients up to the saturation of the output.
var LeftIG = method(stages.Def[LeftIGParams]{
	Name: "attribute/left-ig",
	Doc: `the mean gradient on the path before the output saturates

Integrated gradients from a baseline to the first step whose output exceeds alpha times
the largest of the path: the mean of the derivatives at the steps before that one, at
least of one, times the difference of image and baseline. Beyond, the net is saturated,
and derivatives say little about the decision. Miglani et al., "Investigating Saturation
Effects in Integrated Gradients", ICML 2020 workshop on human interpretability, as the
code of MAS computes it.`,
	Version:   1,
	Tolerance: kinks,
	Passes:    stages.Passes{Forward: "≤ 2 × steps", Backward: "≤ steps"},
	Variants: []stages.Variant{{
		Item: "division and cut", Default: "official",
		Differs: "the paper integrates, which would divide by all steps rather than by those that count, " +
			"and so scale a whole map; where the largest output is negative, or the first exceeds the cut, " +
			"a single derivative counts, that at the baseline",
		Golden: "ig_family",
	}},
	Declares: func(p LeftIGParams, _ map[string]stages.Declared) stages.Declared {
		return p.declares(contributionMap, "")
	},
	Defaults: LeftIGParams{Differentiated: plain(tapped()), Steps: 50, Alpha: 0.9, Baseline: "zero"},
})

func (p LeftIGParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	at, _ := quadrature("linspace-mean", p.Steps)
	s, err := p.straight(ctx, e, n, p.Baseline, len(at), len(at))
	if err != nil {
		return err
	}
	for i := range e.Len() {
		t, err := p.target(e, i, n)
		if err != nil {
			return err
		}
		responses, err := s.responses(ctx, i, t, at)
		if err != nil {
			return err
		}
		count := p.cut(responses)
		weights := slices.Repeat([]float64{1 / float64(count)}, count)
		values, err := s.integral(ctx, i, t, at[:count], weights)
		if err != nil {
			return err
		}
		if err := p.put(e, i, n, values, s.path.Shape()); err != nil {
			return err
		}
	}
	return nil
}

// cut returns how many steps count, given the outputs along the path.
func (p LeftIGParams) cut(responses []float64) int {
	if p.Alpha == 1 {
		return len(responses)
	}
	enough := p.Alpha * slices.Max(responses)
	return max(1, slices.IndexFunc(responses, func(r float64) bool { return r > enough }))
}
