package attribute

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
)

// VarGradParams are the parameters of [VarGrad].
type VarGradParams struct {
	Differentiated
	Copies
}

// VarGrad is the variance of the gradient over noise.
var VarGrad = method(stages.Def[VarGradParams]{
	Name: "attribute/vargrad",
	Doc: `the variance of the gradient over noisy copies of the image

Noise is added as attribute/smoothgrad adds it; the map has the mean of the squared
derivatives minus the square of their mean. Adebayo et al., "Local Explanation Methods
for Deep Neural Networks Lack Sensitivity to Parameter Values", ICLR 2018 workshop.`,
	Version:   1,
	Tolerance: kinks,
	Passes:    stages.Passes{Forward: "samples", Backward: "samples"},
	Seeded:    true,
	Variants: []stages.Variant{{
		Item: "noise", Default: "samples: 25, noise: 0.15, scale: range",
		Differs: "captum adds noise of standard deviation 1 to 5 copies (scale: absolute); it divides by " +
			"the number of copies too, not by one less",
		Golden: "captum",
	}},
	Defaults: VarGradParams{Differentiated: plain(tapped()), Copies: Copies{Samples: 25, Noise: 0.15,
		Scale: "range"}},
})

func (p VarGradParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	return p.runNoise(ctx, e, n, p.draw(e))
}

// runNoise makes the maps. The moments need float64 and are computed outside the graph.
func (p VarGradParams) runNoise(ctx context.Context, e *stages.Env, n *program.Net, noise draw) error {
	q, err := p.derivative(ctx, e, n)
	if err != nil {
		return err
	}
	g, err := p.copiesOf(ctx, e, n, q)
	if err != nil {
		return err
	}
	noiseless, err := p.noiseless(ctx, e, n, q.Layer)
	if err != nil {
		return err
	}
	shape := g.Shape()
	var copied []float32
	for i := range e.Len() {
		t, err := p.target(e, i, n)
		if err != nil {
			return err
		}
		x, of, err := noiseless(i)
		if err != nil {
			return err
		}
		copied = slices.Grow(copied[:0], len(x))[:len(x)]
		clear(copied)
		next := noise(i, ownTokens(e, i, n, x))
		var m moments
		for k := 0; k < p.Samples; k += g.Batch {
			rows := min(g.Batch, p.Samples-k)
			for row := range rows {
				g.set(row, t, of)
				next(ownTokens(e, i, n, copied))
				to := g.value(row)
				for j, v := range copied {
					to[j] = x[j] + v
				}
			}
			if err := g.run(ctx); err != nil {
				return err
			}
			for row := range rows {
				m.add(g.gradient(row))
			}
		}
		if err := p.put(e, i, n, m.variance(), shape); err != nil {
			return err
		}
	}
	return nil
}

// copies are the rows of a program that takes derivatives at noisy copies of an image, or of the value of a
// layer for a text.
type copies struct {
	*program.Program
	set      func(row int, t program.Target, image []float32)
	value    func(row int) []float32 // with noise
	run      func(ctx context.Context) error
	gradient func(row int) []float32
}

func (p VarGradParams) copiesOf(ctx context.Context, e *stages.Env, n *program.Net,
	q lower.Question) (copies, error) {
	batch := n.Fit(p.Samples, e.Batch)
	if n.Text != nil {
		s, err := n.Slope(ctx, e.Slot, q, batch)
		return copies{s.Program, s.Set, s.Value, s.Run, s.Gradient}, err
	}
	g, err := n.Gradient(ctx, e.Slot, q, batch)
	set := func(row int, t program.Target, _ []float32) { g.Explain(row, t) }
	return copies{g.Program, set, g.Image, g.Run, g.Gradient}, err
}

// moments are the mean of values and their squared distance from it, updated sample by sample (Welford),
// which subtracts no large sums.
type moments struct {
	count        float64
	mean, square []float64
}

func (m *moments) add(values []float32) {
	if m.mean == nil {
		m.mean, m.square = make([]float64, len(values)), make([]float64, len(values))
	}
	m.count++
	for k, v := range values {
		before := float64(v) - m.mean[k]
		m.mean[k] += before / m.count
		m.square[k] += float64(before * (float64(v) - m.mean[k]))
	}
}

func (m *moments) variance() []float64 {
	out := make([]float64, len(m.square))
	for k, s := range m.square {
		out[k] = s / m.count
	}
	return out
}
