package score

import (
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// TokenF1Params are the parameters of [TokenF1].
type TokenF1Params struct {
	LocalisationParams
	Top int `yaml:"top" doc:"how many of the most relevant tokens are the map's rationale, of those that have relevance; 0: as many as the marked ones" min:"0" max:"1000000"`
}

// TokenF1 is the agreement of a map's most relevant tokens and those that people marked, of DeYoung et al.,
// "ERASER: A Benchmark to Evaluate Rationalized NLP Models", ACL 2020, section 4.1.
var TokenF1 = localisation(stages.Def[TokenF1Params]{
	Name: "score/token-f1",
	Doc: `agreement of the top tokens and a rationale by people

The harmonic mean of precision and recall of the top most relevant tokens, of those that
have relevance by values, as a detector of the marked ones: 2·|T ∩ M| / (|T| + |M|). Where
equal tokens compete for the last places, the mean over all choices counts. chance is the
mean over equally many tokens drawn at random. Tokens that the mask ignores, as special
ones, are left out. It takes masks of images, too. DeYoung et al., "ERASER", ACL 2020, who
take as many tokens as the rationales of a data set have on average.`,
	Definition: located(stages.Definition{
		Formula: "2·|T ∩ M| / (|T| + |M|), with the marked tokens M and the most relevant tokens T, as " +
			"many as top is, if as many have relevance",
		Reference: "the marked tokens",
		Aggregation: "a quotient of counts; where equal tokens compete for the last places, its mean over " +
			"all choices",
	}),
	Version: 1,
	Inputs:  maskOrBoxes(),
	Variants: []stages.Variant{{
		Item: "no positive relevance", Default: "undefined",
		Differs: "ferret gives 0, which enters means",
	}},
	Defaults: TokenF1Params{LocalisationParams{metric.Positive}, 5},
	Check:    oneObject[TokenF1Params],
}, stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-3,
	ItemTolerance: orderJump},
	func(p TokenF1Params) string { return p.Values }, nil,
	func(p TokenF1Params, v []float64, mask []uint8) (score, chance float64) {
		area := metric.MaskArea(mask)
		if area == 0 || !metric.Relevance(v) {
			return math.NaN(), math.NaN()
		}
		n := p.Top
		if n == 0 {
			n = area
		}
		n = min(n, relevant(v))
		f1 := func(t metric.Top) float64 { return 2 * t.Hits() / float64(n+area) }
		return f1(metric.TopOf(v, mask, n)), f1(metric.Anywhere(n, len(v), area))
	})

// relevant returns how many values aren't 0.
func relevant(values []float64) (n int) {
	for _, v := range values {
		if v != 0 {
			n++
		}
	}
	return n
}
