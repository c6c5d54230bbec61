package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// RISEParams are the parameters of [RISE].
type RISEParams struct {
	Tapped
	Masks int     `yaml:"masks" doc:"the number of random masks" min:"1" max:"1000000"`
	Cells int     `yaml:"cells" doc:"cells along each side of the coarse grid that masks are enlarged from" min:"1" max:"1024"`
	P     float64 `yaml:"p" doc:"the probability that a cell is visible" min:"0.000001" max:"1"`
}

// RISE is randomised input sampling for explanation. By default it explains the probability, as its paper
// does.
var RISE = method(stages.Def[RISEParams]{
	Name: "attribute/rise",
	Doc: `mean of random masks, weighted by the output under each

Coarse random grids are enlarged to smooth masks at random offsets; a pixel's value
is the sum of masks times responses, divided by the number of masks and by p:
Σₙ f(x·mₙ)·mₙ/(N·p). All images see the same masks. At an inner layer masks hide places of
its value. Petsiuk, Das and Saenko, "RISE: Randomized Input Sampling for Explanation of
Black-box Models", BMVC 2018, section 3.`,
	Version: 1,
	Passes:  stages.Passes{Forward: "masks"},
	Seeded:  true,
	Inputs: imageInputs("its masks show pixels in part, and a token is shown or not: " +
		"use attribute/lime"),
	Defaults: RISEParams{Tapped: probable(), Masks: 4000, Cells: 7, P: 0.5},
})

func (p RISEParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	v, err := p.view(ctx, e, n, "zero", func(int, int) int { return p.Masks })
	if err != nil {
		return err
	}
	masks := drawMasks(e.SharedRand("masks"), p.Masks, p.Cells, p.P, v.height, v.width)
	sums, err := p.accumulate(ctx, e, n, v, p.Masks, masks.render)
	if err != nil {
		return err
	}
	for i, sum := range sums {
		for k := range sum {
			sum[k] /= float64(p.Masks) * p.P
		}
		p.putView(e, i, n, sum, v)
	}
	return nil
}

// accumulate returns for every item the sum of count masks times the responses under them. A batch of masks
// is rendered once for all items.
func (p RISEParams) accumulate(ctx context.Context, e *stages.Env, n *program.Net, v view, count int,
	render func(k int, mask []float32)) ([][]float64, error) {
	targets := make([]program.Target, e.Len())
	sums := make([][]float64, e.Len())
	for i := range sums {
		var err error
		if targets[i], err = p.target(e, i, n); err != nil {
			return nil, err
		}
		sums[i] = make([]float64, v.height*v.width)
	}
	for from := 0; from < count; from += v.Batch {
		rows := min(v.Batch, count-from)
		masks := make([][]float32, rows)
		for row := range masks {
			masks[row] = v.mask(row)
			render(from+row, masks[row])
		}
		for i := range sums {
			v.set(i)
			if err := v.run(ctx); err != nil {
				return nil, err
			}
			for row := range rows {
				response := p.response(n, v.Row(row), targets[i])
				for k, seen := range masks[row] {
					sums[i][k] += float64(response * float64(seen))
				}
			}
		}
	}
	return sums, nil
}
