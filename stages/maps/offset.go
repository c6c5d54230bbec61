package maps

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// OffsetParams are the parameters of [Offset].
type OffsetParams struct {
	Amount float64          `yaml:"amount" doc:"what is added to every pixel, or which share of the number that of names" min:"-1000000" max:"1000000"`
	Of     string           `yaml:"of" doc:"amount is absolute; or a share of the map's largest value, of its largest magnitude, or of the largest magnitude of sums over channels" choices:"absolute|max|max-abs|max-abs-sum"`
	Reduce metric.Reduction `yaml:"reduce" doc:"what is made of the channels, as by maps/reduce, before the offset is added and after it is measured" choices:"none|sum|abs-sum|sum-abs|max-abs|mean"`
}

// Offset adds a constant to maps.
var Offset = stages.New(stages.Def[OffsetParams]{
	Name: "maps/offset",
	Doc: `maps with a constant added to every pixel

Which changes no order, and yet some scores. Maps are written in double precision, so
that equal differences stay equal; where rounding makes pixels equal, they are counted.
The sensitivity test of Walker et al., "Attribution Quality Metrics with Magnitude
Alignment", 2024, adds shares of the signed map's largest value to magnitudes: reduce:
abs-sum, of: max, amount: 0.05, 0.1, 0.25, 0.5, with maps that keep their channels
(reduce: none of the method).`,
	Version:  1,
	Relation: stages.Each,
	Inputs:   input(),
	Outputs:  output("the map plus the offset, f64"),
	Variants: []stages.Variant{{
		Item: "what an offset is a share of", Default: "of: max",
		Differs: "the code of MAS measures the largest value of the signed map with its channels, and adds " +
			"to the magnitude of the channels' sum, whose largest value is another",
		Golden: "sensitivity",
	}},
	Defaults: OffsetParams{Amount: 0.1, Of: "max", Reduce: metric.None},
	Run: func(ctx context.Context, p OffsetParams, e *stages.Env) error {
		return each(ctx, e, stages.F64, func(i int, f field) (field, error) {
			out, merged := p.add(f)
			if merged > 0 {
				e.WarnItem(i, "%d pixels became equal to others: scores of their order may change", merged)
			}
			return out, nil
		})
	},
})

// add adds the offset. merged is how many values rounding made equal to others.
func (p OffsetParams) add(f field) (out field, merged int) {
	offset := p.Amount * f.largest(p.Of)
	if p.Reduce != metric.None {
		f = f.reduced(p.Reduce)
	}
	merged = distinct(f.values)
	for i := range f.values {
		f.values[i] += offset
	}
	return f, merged - distinct(f.values)
}

// distinct returns the number of different values.
func distinct(values []float64) int { return len(slices.Compact(slices.Sorted(slices.Values(values)))) }
