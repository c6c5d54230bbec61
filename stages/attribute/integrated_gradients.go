package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// IntegratedGradientsParams are the parameters of [IntegratedGradients].
type IntegratedGradientsParams struct {
	Differentiated
	Steps    int    `yaml:"steps" doc:"number of derivatives along the path" min:"1" max:"100000"`
	Rule     string `yaml:"rule" doc:"where derivatives are taken, and their weights" choices:"gauss-legendre|left|right|middle|trapezoid|captum-trapezoid|linspace-mean"`
	Baseline string `yaml:"baseline" doc:"where the path begins: zero after normalisation, or a black image; at an inner layer zeros, or its value for a black image; of a text zero embeddings, or the mask or pad token. The port baselines overrides it" choices:"zero|black|mask|pad"`
}

// Validate refuses rules that need more steps.
func (p IntegratedGradientsParams) Validate() error {
	if p.Steps == 1 && (p.Rule == "trapezoid" || p.Rule == "captum-trapezoid") {
		return stages.BadField("steps", "steps: rule %s samples both ends of the path, which 1 step can't",
			p.Rule)
	}
	return p.Tapped.Validate()
}

// IntegratedGradients is integrated gradients.
var IntegratedGradients = comparisonMethod("baseline", 1e-2, stages.Def[IntegratedGradientsParams]{
	Name: "attribute/integrated-gradients",
	Doc: `the mean gradient between a baseline and the image

What each pixel adds to the output between the baseline and the image: the values
of a map with all its channels sum to the difference of the outputs, as far as the
steps suffice; the port completeness has what is left over. The derivatives are added
up inside the model's graph, so memory doesn't grow with the steps. Sundararajan, Taly
and Yan, "Axiomatic Attribution for Deep Networks", ICML 2017, equation 1.`,
	Version:   2,
	Tolerance: kinks,
	Passes:    stages.Passes{Forward: "steps + 2", Backward: "steps"},
	Variants: []stages.Variant{{
		Item: "quadrature", Default: "rule: gauss-legendre",
		Differs: "captum offers all but linspace-mean and trapezoid, and its trapezoid's weights sum to " +
			"(n−1)/n (captum-trapezoid); the code of MAS and of PAIR averages samples that include both " +
			"ends (linspace-mean)",
		Golden: "captum, ig_family",
	}},
	Declares: func(p IntegratedGradientsParams, in map[string]stages.Declared) stages.Declared {
		return p.compares(p.Baseline, in)
	},
	Defaults: IntegratedGradientsParams{Differentiated: plain(tapped()), Steps: 50, Rule: "gauss-legendre",
		Baseline: "zero"},
})

func (p IntegratedGradientsParams) check(wired func(string) bool) error {
	return p.checkCompared(p.Baseline, wired)
}

func (p IntegratedGradientsParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	at, weights := quadrature(p.Rule, p.Steps)
	ends := []float64{0, 1} // whose outputs need no backward pass
	s, err := p.straight(ctx, e, n, p.Baseline, len(at), len(ends))
	if err != nil {
		return err
	}
	for i := range e.Len() {
		t, err := p.target(e, i, n)
		if err != nil {
			return err
		}
		responses, err := s.responses(ctx, i, t, ends)
		if err != nil {
			return err
		}
		values, err := s.integral(ctx, i, t, at, weights)
		if err != nil {
			return err
		}
		excess := responses[0] - responses[1]
		for _, v := range values {
			excess += v
		}
		e.Put("completeness", i, stages.Scalar(excess))
		p.warnIncomplete(e, i, excess, responses[1], responses[0], "more steps reduce the error, unless the "+
			"model jumps, as at Round, Floor and the masks of comparisons")
		if err := p.put(e, i, n, values, s.path.Shape()); err != nil {
			return err
		}
	}
	return nil
}
