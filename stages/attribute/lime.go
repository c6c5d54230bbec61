package attribute

import (
	"cmp"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
)

// LIMEParams are the parameters of [LIME].
type LIMEParams struct {
	Replaced
	Draw     string  `yaml:"draw" doc:"subsets that have each unit with probability p" choices:"bernoulli"`
	Samples  int     `yaml:"samples" doc:"how many subsets are drawn; the image itself is one more" min:"1" max:"1000000"`
	P        float64 `yaml:"p" doc:"the probability that a unit is replaced" min:"0" max:"1"`
	Width    float64 `yaml:"width" doc:"of the kernel that weighs subsets by their distance d from the image: exp(−d²/(2·width²))" min:"0.000001" max:"1000"`
	Penalty  float64 `yaml:"penalty" doc:"of the squares of the coefficients, in the ridge regression" min:"0" max:"1000000000"`
	Features int     `yaml:"features" doc:"how many units have a value, the others 0; 0: all" min:"0" max:"1000000"`
	Choice   string  `yaml:"choice" doc:"how these units are chosen: one after the other by the best fit, those with the largest coefficients in a regression of penalty 0.01, or, auto, the first way up to 6" choices:"auto|forward|highest-weights"`
}

// LIME is the explanation of images by local linear models.
var LIME = solvingMethod(fitted(stages.Def[LIMEParams]{
	Name: "attribute/lime",
	Doc: `coefficients of units in a linear model near the image

Images with random units replaced are shown to the model, and weighted by their distance
from the image: that of cosines of the units that are shown and of all. The value of a
unit is its coefficient in a ridge regression of the responses. Defaults are those of the
authors' code for images, where units are segments of segments/quickshift, which are to
be wired. The passes are those of perturb/subset, samples + 2. Ribeiro, Singh and
Guestrin, "Why Should I Trust You?: Explaining the Predictions of Any Classifier", KDD 2016.`,
	Version: 1,
	Variants: []stages.Variant{{
		Item: "solver", Default: "the ridge regression of the authors' code",
		Differs: "captum fits a lasso, α = 0.01, to 25 images, with cosines of pixels and a width of 1",
		Golden:  "lime",
	}},
	Declares: func(p LIMEParams, in map[string]stages.Declared) stages.Declared {
		return p.declared(false, in)
	},
	Defaults: func() LIMEParams {
		p := LIMEParams{Replaced: replaced(), Draw: "bernoulli", Samples: 999, P: 0.5, Width: 0.25,
			Penalty: 1, Choice: "auto"}
		p.Output, p.Substrate = "probability", "segment-mean"
		return p
	}(),
}))

func (p LIMEParams) draw() string { return p.Draw }

// weight returns the weight of a coalition that shows this many of all units. Its distance from all is that
// of cosines of the vectors of zeros and ones, 1 − k/(√k·√all).
func (p LIMEParams) weight(shown, all int) float64 {
	d := 1 - math.Sqrt(float64(shown)/float64(all))
	return math.Exp(-d * d / (2 * p.Width * p.Width))
}

func (p LIMEParams) solve(g game) (values []float64, fit float64) {
	n := newNormal(g.Units)
	all := make([]int, g.Units)
	for k := range all {
		all[k] = k
	}
	n.add(all, 1, g.image)
	var shown []int
	for row, y := range g.responses {
		shown = g.shown(row, shown[:0])
		n.add(shown, p.weight(len(shown), g.Units), y)
	}
	features := p.features(n, all)
	coefficients, intercept := n.ridge(features, p.Penalty)
	if coefficients == nil {
		return nil, math.NaN()
	}
	values = make([]float64, g.Units)
	whole := intercept
	for k, u := range features {
		values[u] = coefficients[k]
		whole += coefficients[k]
	}
	var d deviation
	d.add(1, g.image, whole)
	for row, y := range g.responses {
		d.add(p.weight(g.Units-g.Size(row), g.Units), y, whole-g.Sum(row, values))
	}
	return values, d.explained()
}

// features returns the units that have a coefficient.
func (p LIMEParams) features(n *normal, all []int) []int {
	switch {
	case p.Features == 0 || p.Features >= len(all):
		return all
	case p.Choice == "forward" || p.Choice == "auto" && p.Features <= 6:
		return n.forward(p.Features)
	}
	coefficients, _ := n.ridge(all, 0.01)
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(math.Abs(coefficients[b]), math.Abs(coefficients[a]))
	})
	return order[:p.Features]
}
