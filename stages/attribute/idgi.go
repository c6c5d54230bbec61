package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// IDGIParams are the parameters of [IDGI].
type IDGIParams struct {
	Differentiated
	Steps    int    `yaml:"steps" doc:"number of positions on the path, with both ends" min:"2" max:"100000"`
	Baseline string `yaml:"baseline" doc:"where the path begins: zero after normalisation, or a black image; at an inner layer zeros, or its value for a black image; of a text zero embeddings, or the mask or pad token. The port baselines overrides it" choices:"zero|black|mask|pad"`
}

// IDGI is important direction gradient integration.
var IDGI = comparisonMethod("baseline", 1e-4, stages.Def[IDGIParams]{
	Name: "attribute/idgi",
	Doc: `what each step of the path adds, by squared gradients

On the straight path from a baseline to the image, each step changes the output. That
change is shared among the values in proportion to the squares of their derivatives
where the step begins: the movement along the gradient, which alone explains the
change to first order. So the values of a map sum to the difference of the outputs,
whatever the number of steps. Yang, Wang and Bilgic, "IDGI: A Framework to Eliminate
Explanation Noise from Integrated Gradients", CVPR 2023, algorithm 1.`,
	Version:   1,
	Tolerance: kinks,
	Passes:    stages.Passes{Forward: "steps", Backward: "steps"},
	Variants: []stages.Variant{{
		Item: "steps without a gradient", Default: "nothing is shared",
		Differs: "the authors' code divides by 0 there, and the whole map is undefined; the change that no " +
			"value gets is on the port completeness",
		Golden: "paths.npz",
	}},
	Declares: func(p IDGIParams, in map[string]stages.Declared) stages.Declared {
		return p.compares(p.Baseline, in)
	},
	Defaults: IDGIParams{Differentiated: plain(tapped()), Steps: 50, Baseline: "zero"},
})

func (p IDGIParams) check(wired func(string) bool) error { return p.checkCompared(p.Baseline, wired) }

func (p IDGIParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	at, _ := quadrature("linspace-mean", p.Steps)
	w, err := p.walk(ctx, e, n, len(at))
	if err != nil {
		return err
	}
	x, err := p.ends(ctx, e, n, p.Baseline)
	if err != nil {
		return err
	}
	for i := range e.Len() {
		t, err := p.target(e, i, n)
		if err != nil {
			return err
		}
		from, to := x.from.of(i), x.to[i]
		s := newChanges(len(to))
		if err := w.along(ctx, t, x.images[i], len(at),
			func(k int, dst []float32) { between(from, to, at[k], dst) }, s.take); err != nil {
			return err
		}
		change := s.response - s.first
		excess := s.shared - change
		e.Put("completeness", i, stages.Scalar(excess))
		warnIncomplete(e, i, excess, s.response, s.first, "the rest is of steps without a gradient")
		if err := p.put(e, i, n, s.sum, w.slope.Shape()); err != nil {
			return err
		}
	}
	return nil
}

// changes are what the steps of a path have added to the response so far, shared by squared derivatives.
type changes struct {
	sum             []float64
	shared          float64   // their sum
	first, response float64   // at the beginning of the path, and at the point visited last
	squares         []float64 // of the derivatives there
	total           float64   // the sum of squares
}

func newChanges(size int) *changes {
	return &changes{sum: make([]float64, size), squares: make([]float64, size)}
}

// take adds the step from the last visited point to the next one.
func (s *changes) take(v visit) {
	if v.k == 0 {
		s.first = v.response
	} else if change := v.response - s.response; s.total != 0 {
		for i, square := range s.squares {
			s.sum[i] += float64(square * (change / s.total))
		}
		s.shared += change
	}
	s.response, s.total = v.response, 0
	for i, g := range v.gradient {
		s.squares[i] = float64(float64(g) * float64(g))
		s.total += s.squares[i]
	}
}
