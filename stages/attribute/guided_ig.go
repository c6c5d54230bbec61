package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// GuidedIGParams are the parameters of [GuidedIG].
type GuidedIGParams struct {
	Differentiated
	Variant     string  `yaml:"variant" doc:"paper follows the path in float64, as the authors' code does; official-mas in float32" choices:"paper|official-mas"`
	Steps       int     `yaml:"steps" doc:"how many derivatives are taken along the path" min:"1" max:"100000"`
	Fraction    float64 `yaml:"fraction" doc:"the share of values, those with the smallest derivatives, that move at once" min:"0" max:"1"`
	MaxDistance float64 `yaml:"max_distance" doc:"how far any value may be from the straight path, as a share of its way: 0 is the straight path, 1 any path" min:"0" max:"1"`
	Baseline    string  `yaml:"baseline" doc:"where the path begins: zero after normalisation, or a black image; at an inner layer zeros, or its value for a black image; of a text zero embeddings, or the mask or pad token" choices:"zero|black|mask|pad"`
}

// GuidedIG is integrated gradients along a path that avoids large gradients.
var GuidedIG = method(stages.Def[GuidedIGParams]{
	Name: "attribute/guided-ig",
	Doc: `integrated gradients on a path that avoids large gradients

From baseline to image, each step moves those values first whose derivatives are
smallest, until it has gone its share of the way, so that the path keeps away from
regions whose large derivatives have little to do with the image. By default it explains
the probability, as both codes do. Which values move depends on the last digit of
derivatives, so that maps of other runtimes differ visibly. Kapishnikov et al., "Guided
Integrated Gradients: An Adaptive Path Method for Removing Noise", CVPR 2021,
algorithm 1.`,
	Version:   1,
	Tolerance: pathTolerance,
	Passes:    stages.Passes{Forward: "steps", Backward: "steps"},
	Variants: []stages.Variant{{
		Item: "precision and steps", Default: "paper",
		Differs: "the authors' code follows the path in float64; official-mas is the code of MAS, which " +
			"does in float32; its experiments take 50 steps, fraction 0.5 and max_distance 1",
		Golden: "ig_family",
	}},
	Declares: func(p GuidedIGParams, _ map[string]stages.Declared) stages.Declared {
		return p.declares(contributionMap, p.Baseline)
	},
	Defaults: GuidedIGParams{Differentiated: plain(probable()), Variant: "paper", Steps: 200, Fraction: 0.25,
		MaxDistance: 0.02, Baseline: "zero"},
})

// probable returns the defaults of methods that explain the probability.
func probable() Tapped {
	p := tapped()
	p.Output = "probability"
	return p
}

// A guidedPath leads from a baseline to an image in steps.
type guidedPath interface {
	// position writes the current position.
	position(dst []float32)
	// step takes step number k, given the derivative at the current position.
	step(k int, gradient []float32)
	// attribution returns the sum over the steps for each value.
	attribution() []float64
}

func (p GuidedIGParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	q, err := p.derivative(ctx, e, n)
	if err != nil {
		return err
	}
	s, err := n.Slope(ctx, e.Slot, q, n.Fit(e.Len(), e.Batch))
	if err != nil {
		return err
	}
	x, err := p.ends(ctx, e, n, p.Baseline)
	if err != nil {
		return err
	}
	for first := 0; first < e.Len(); first += s.Batch {
		paths := make([]guidedPath, min(s.Batch, e.Len()-first))
		for row := range paths {
			i := first + row
			t, err := p.target(e, i, n)
			if err != nil {
				return err
			}
			s.Set(row, t, x.images[i])
			copy(s.Value(row), x.to[i])
			paths[row] = p.newPath(ownTokens(e, i, n, x.from.of(i)), ownTokens(e, i, n, x.to[i]))
		}
		for k := range p.Steps {
			for row, w := range paths {
				w.position(s.Value(row))
			}
			if err := s.Run(ctx); err != nil {
				return err
			}
			for row, w := range paths {
				w.step(k, s.Gradient(row))
			}
		}
		for row, w := range paths {
			values := make([]float64, len(x.to[first+row]))
			copy(values, w.attribution())
			if err := p.put(e, first+row, n, values, s.Shape()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p GuidedIGParams) newPath(from, to []float32) guidedPath {
	if p.Variant == "official-mas" {
		return newGuided[float32](p, from, to)
	}
	return newGuided[float64](p, from, to)
}
