package attribute

import "github.com/runexp/runexp/stages"

// ShapleySamplingParams are the parameters of [ShapleySampling].
type ShapleySamplingParams struct {
	Replaced
	Draw    string `yaml:"draw" doc:"the beginnings of random orders of all units" choices:"permutation"`
	Samples int    `yaml:"samples" doc:"how many orders are drawn" min:"1" max:"1000000"`
	Paired  bool   `yaml:"paired" doc:"whether each order is followed by its reverse"`
}

// ShapleySampling is the estimate of Shapley values by random orders.
var ShapleySampling = solvingMethod(stages.Def[ShapleySamplingParams]{
	Name: "attribute/shapley-sampling",
	Doc: `mean drops along random orders, which are Shapley values

Units are replaced one after the other in a random order; the value of a unit is the mean
drop of the explained output when its turn comes. Values sum to the output for the image
minus that for the substrate, and are unbiased; an order and its reverse err less than two
orders. The passes are those of perturb/subset, samples·(units − 1) + 2. Castro et al.,
"Polynomial Calculation of the Shapley Value Based on Sampling", 2009.`,
	Version: 1,
	Declares: func(p ShapleySamplingParams, in map[string]stages.Declared) stages.Declared {
		return p.declared(true, in)
	},
	Defaults: ShapleySamplingParams{Replaced: replaced(), Draw: "permutation", Samples: 25},
})

func (p ShapleySamplingParams) draw() string { return p.Draw }

func (p ShapleySamplingParams) solve(g game) (values []float64, fit float64) {
	values = make([]float64, g.Units)
	orders := 0
	for row := 0; row == 0 || row < g.Count; row += g.Units - 1 {
		orders++
		before := g.image
		for k := range g.Units { // the last one leaves none
			y := g.hidden
			if k < g.Units-1 {
				y = g.responses[row+k]
			}
			values[g.turn(row, k)] += before - y
			before = y
		}
		if g.Units == 1 {
			break
		}
	}
	for k := range values {
		values[k] /= float64(orders)
	}
	return values, 0
}

// turn returns the unit that comes k-th in the order whose beginnings are the subsets from row on.
func (g game) turn(row, k int) int {
	for u := range g.Units {
		has := k == g.Units-1 || g.Has(row+k, u)
		had := k > 0 && g.Has(row+k-1, u)
		if has && !had {
			return u
		}
	}
	return 0
}
