package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// RISEParams are the parameters of [RISE].
type RISEParams struct {
	Common
	Masks int     `yaml:"masks" doc:"the number of random masks" min:"1" max:"1000000"`
	Cells int     `yaml:"cells" doc:"cells along each side of the coarse grid that masks are enlarged from" min:"1" max:"1024"`
	P     float64 `yaml:"p" doc:"the probability that a cell is visible" min:"0.000001" max:"1"`
}

// RISE is the stage of randomised input sampling for explanation. By default it
// explains the probability, as its paper does.
var RISE = stages.New(stages.Def[RISEParams]{
	Name: "attribute/rise",
	Doc: `mean of random masks, weighted by the answer under each

Coarse random grids are enlarged to smooth masks at random offsets; a pixel's value
is the sum of masks times responses, divided by the number of masks and by p. All
images see the same masks. Petsiuk, Das and Saenko, "RISE: Randomized Input Sampling
for Explanation of Black-box Models", BMVC 2018.`,
	Version:  1,
	Relation: stages.Each,
	Seeded:   true,
	Device:   true,
	Inputs:   inputs(),
	Outputs:  outputs(),
	Defaults: RISEParams{Common: Common{Target: "predicted", Layer: "input", Output: "probability", Reduce: "sum"}, Masks: 4000, Cells: 7, P: 0.5},
	Check:    func(p RISEParams, wired func(string) bool) error { return p.check(wired) },
	Run:      runRISE,
})

func runRISE(ctx context.Context, p RISEParams, e *stages.Env) error {
	n, err := program.Load(e)
	if err != nil {
		return err
	}
	masks := drawMasks(e.SharedRand("masks"), p.Masks, p.Cells, p.P, n.Height, n.Width)
	sums, err := p.accumulate(ctx, e, n, p.Masks, masks.render)
	if err != nil {
		return err
	}
	for i, sum := range sums {
		for k := range sum {
			sum[k] /= float64(p.Masks) * p.P
		}
		e.Put("maps", i, p.reduced(sum, 1, n.Height, n.Width))
		e.Done(1)
	}
	return nil
}

// accumulate returns for every item the sum of count masks times the responses
// under them. A batch of masks is rendered once for all items.
func (p RISEParams) accumulate(ctx context.Context, e *stages.Env, n *program.Net, count int, render func(k int, mask []float32)) ([][]float64, error) {
	m, err := n.Masked(e.Slot, n.Fit(count, e.Batch))
	if err != nil {
		return nil, err
	}
	images := make([][]float32, e.Len())
	targets := make([]program.Target, e.Len())
	sums := make([][]float64, e.Len())
	for i := range images {
		if targets[i], err = p.target(e, i, n); err != nil {
			return nil, err
		}
		images[i] = make([]float32, n.Size())
		if err := image(e, i, n, images[i]); err != nil {
			return nil, err
		}
		sums[i] = make([]float64, n.Height*n.Width)
	}
	zero := make([]float32, n.Size())
	for from := 0; from < count; from += m.Batch {
		rows := min(m.Batch, count-from)
		for row := range rows {
			render(from+row, m.Mask(row))
		}
		for i := range images {
			m.Set(images[i], zero)
			if err := m.Run(ctx); err != nil {
				return nil, err
			}
			for row := range rows {
				response := p.response(n, m.Row(row), targets[i])
				for k, v := range m.Mask(row) {
					sums[i][k] += float64(response * float64(v))
				}
			}
		}
	}
	return sums, nil
}
