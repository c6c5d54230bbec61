package attribute

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
)

// SmoothGradParams are the parameters of [SmoothGrad].
type SmoothGradParams struct {
	Differentiated
	Copies
	Mean string `yaml:"mean" doc:"what is averaged over the copies: derivatives, their magnitudes, or their squares" choices:"derivative|magnitude|square"`
}

// Copies are the parameters of methods that average over noisy copies of an image.
type Copies struct {
	Samples int     `yaml:"samples" doc:"how many noisy copies of the image" min:"1" max:"100000"`
	Noise   float64 `yaml:"noise" doc:"the standard deviation of the noise" min:"0" max:"1000"`
	Scale   string  `yaml:"scale" doc:"what noise is measured in: the range of the values of the normalised image, or of a text's embedding, or absolutely" choices:"range|absolute"`
}

// SmoothGrad averages the derivative over noise.
var SmoothGrad = method(stages.Def[SmoothGradParams]{
	Name: "attribute/smoothgrad",
	Doc: `the mean gradient of noisy copies of the image

1/n·Σₖ ∂f/∂x at x + εₖ, where the εₖ are Gaussian noise on the normalised image, or on the
explained layer of a text. Every image has noise of its own, which depends on the
experiment's seed and the image alone. The derivatives are added up inside the model's graph,
	so memory doesn't grow with the
samples. Smilkov et al., "SmoothGrad: removing noise by adding noise", ICML 2017
workshop.`,
	Version:   2,
	Tolerance: kinks,
	Passes:    stages.Passes{Forward: "samples", Backward: "samples"},
	Seeded:    true,
	Variants: []stages.Variant{{
		Item: "noise and mean", Default: "samples: 25, noise: 0.15, scale: range, mean: derivative",
		Differs: "captum adds noise of standard deviation 1 to 5 copies (scale: absolute); the code of " +
			"PAIR averages squares when it is asked for magnitudes (mean: square)",
		Golden: "captum",
	}},
	Declares: func(p SmoothGradParams, _ map[string]stages.Declared) stages.Declared {
		if p.Mean != "derivative" {
			return nil
		}
		return p.declares(gradientMap, "")
	},
	Defaults: SmoothGradParams{Differentiated: plain(tapped()), Copies: Copies{Samples: 25, Noise: 0.15,
		Scale: "range"},
		Mean: "derivative"},
})

func (p SmoothGradParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	return p.runNoise(ctx, e, n, p.draw(e))
}

// A draw returns, for an item and what gets noise, its normalised image or a text's embedding, a function
// that writes the noise of the next copy.
type draw func(i int, x []float32) func(noise []float32)

// draw draws Gaussian noise that depends on the seed and the image alone.
func (p Copies) draw(e *stages.Env) draw {
	return func(i int, x []float32) func([]float32) {
		r, std := e.Rand("noise", i), p.deviation(x)
		return func(noise []float32) {
			for k := range noise {
				noise[k] = float32(r.NormFloat64() * std)
			}
		}
	}
}

// noiseless returns what returns, for an item, what gets noise: the normalised image, or the value of a layer
// for a text, and the image. The next call may overwrite them.
func (p Tapped) noiseless(ctx context.Context, e *stages.Env, n *program.Net,
	layer string) (func(i int) (x, of []float32, err error), error) {
	if n.Text == nil {
		x := make([]float32, n.Size())
		return func(i int) ([]float32, []float32, error) { return x, x, image(e, i, n, x) }, nil
	}
	texts, err := normalised("images", e, n)
	if err != nil {
		return nil, err
	}
	values, _, err := n.Values(ctx, e.Slot, layer, texts, n.Fit(len(texts), e.Batch))
	return func(i int) ([]float32, []float32, error) { return values[i], texts[i], nil }, err
}

// deviation returns the standard deviation of the noise on a normalised image, or on a text's embedding.
func (p Copies) deviation(x []float32) float64 {
	if p.Scale == "absolute" {
		return p.Noise
	}
	return p.Noise * (float64(slices.Max(x)) - float64(slices.Min(x)))
}

// runNoise makes the maps.
func (p SmoothGradParams) runNoise(ctx context.Context, e *stages.Env, n *program.Net, noise draw) error {
	q, err := p.derivative(ctx, e, n)
	if err != nil {
		return err
	}
	g, err := n.Noisy(ctx, e.Slot, q, lower.Summand(p.Mean), n.Fit(p.Samples, e.Batch))
	if err != nil {
		return err
	}
	weights := slices.Repeat([]float64{1 / float64(p.Samples)}, g.Batch)
	noiseless, err := p.noiseless(ctx, e, n, q.Layer)
	if err != nil {
		return err
	}
	for i := range e.Len() {
		t, err := p.target(e, i, n)
		if err != nil {
			return err
		}
		x, of, err := noiseless(i)
		if err != nil {
			return err
		}
		g.Set(t, x, of)
		next := noise(i, ownTokens(e, i, n, x))
		for k := 0; k < p.Samples; k += g.Batch {
			rows := min(g.Batch, p.Samples-k)
			for row := range rows {
				own := ownTokens(e, i, n, g.Noise(row))
				next(own)
				clear(g.Noise(row)[len(own):]) // a longer text may have left its noise in the padding
			}
			if err := g.Run(ctx, weights[:rows]); err != nil {
				return err
			}
		}
		if err := p.put(e, i, n, doubles(g.Sum()), g.Shape()); err != nil {
			return err
		}
	}
	return nil
}
