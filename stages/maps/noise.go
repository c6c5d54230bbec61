package maps

import (
	"context"

	"github.com/runexp/runexp/stages"
)

// NoiseParams are the parameters of [Noise].
type NoiseParams struct {
	Amount       float64 `yaml:"amount" doc:"the noise's width, or which share of the number that of names" min:"0" max:"1000000"`
	Of           string  `yaml:"of" doc:"amount is absolute; or a share of the map's largest value, of its largest magnitude, or of the largest magnitude of sums over channels" choices:"absolute|max|max-abs|max-abs-sum"`
	Distribution string  `yaml:"distribution" doc:"uniform from 0 to the width, or normal with the width as its standard deviation" choices:"uniform|normal"`
}

// Noise adds noise to maps.
var Noise = stages.New(stages.Def[NoiseParams]{
	Name: "maps/noise",
	Doc: `maps with noise added to every value

Each value of each channel gets its own. The noise of a map depends on the experiment's
seed and the map alone: two amounts are the same noise in two sizes. Maps are written in
double precision. The sensitivity test of Walker et al., "Attribution Quality Metrics with
Magnitude Alignment", 2024, takes uniform noise on maps that keep their channels (reduce:
none of the method), and |sum over channels| afterwards: perturb/insertion, score/mas and
others do so, as does maps/reduce with how: abs-sum. On maps of one channel the same width
is less noise.`,
	Version:  1,
	Relation: stages.Each,
	Seeded:   true,
	Inputs:   input(),
	Outputs:  output("the map plus noise, f64"),
	Variants: []stages.Variant{{
		Item: "sizes of the sensitivity test", Default: "amount: 0.005",
		Differs: "the paper's smallest size is 0.05 percent, its code's 0.5 percent; the others are 1, 2 " +
			"and 3 percent",
		Golden: "sensitivity",
	}},
	Defaults: NoiseParams{Amount: 0.005, Of: "max-abs-sum", Distribution: "uniform"},
	Run: func(ctx context.Context, p NoiseParams, e *stages.Env) error {
		return each(ctx, e, stages.F64, func(i int, f field) (field, error) {
			r := e.Rand("noise", i)
			if p.Distribution == "normal" {
				return p.add(f, r.NormFloat64), nil
			}
			return p.add(f, r.Float64), nil
		})
	},
})

// add adds noise, drawn in units of the width.
func (p NoiseParams) add(f field, draw func() float64) field {
	width := p.Amount * f.largest(p.Of)
	for i := range f.values {
		f.values[i] += float64(width * draw())
	}
	return f
}
