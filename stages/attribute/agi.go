package attribute

import (
	"context"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// AGIParams are the parameters of [AGI].
type AGIParams struct {
	Common
	Balanced
	Variant string  `yaml:"variant" doc:"paper goes on from where a step led; official takes each step from the image" choices:"paper|official"`
	Classes int     `yaml:"classes" doc:"into how many equal parts the classes are cut; the first class of each is a false class; 1 means class 0" min:"1" max:"1000000"`
	Steps   int     `yaml:"steps" doc:"the most steps towards a false class" min:"1" max:"100000"`
	Step    float64 `yaml:"step" doc:"how far a step moves every pixel value, which lie in [0,1]" min:"0.000001" max:"1"`
}

// AGI is adversarial gradient integration.
var AGI = method(stages.Def[AGIParams]{
	Name: "attribute/agi",
	Doc: `gradients integrated on paths to false classes

From the image, steps of the size of step follow the sign of the false class's
derivative until the model predicts that class or the steps are used up. What each step
takes from the explained output, as its derivative tells, is added up over the steps and
the false classes; there is no baseline. By default it explains the probability. Pan,
Li and Zhu, "Explaining Deep Neural Network Models with Adversarial Gradient
Integration", IJCAI 2021.`,
	Version:   1,
	Tolerance: signTolerance,
	Passes:    stages.Passes{Forward: "≤ 2 × rivals × steps", Backward: "≤ 2 × rivals × steps"},
	Variants: []stages.Variant{{
		Item: "where steps begin, and false classes", Default: "paper",
		Differs: "official begins every step at the image itself, so that only derivatives are taken " +
			"elsewhere; the paper draws false classes at random, the authors' code takes every 66th of " +
			"1,000 (classes: 15, steps: 15), that of MAS class 0 alone (classes: 1, steps: 20), so that an " +
			"image of class 0 has a map of zeros",
		Golden: "ig_family",
	}},
	Declares: func(p AGIParams, _ map[string]stages.Declared) stages.Declared {
		return p.declares(contributionMap, "")
	},
	Inputs: imageInputs("its steps change the values of pixels, which ids of tokens aren't: " +
		"use attribute/integrated-gradients"),
	Defaults: AGIParams{Common: probable().Common, Variant: "paper", Classes: 15, Steps: 15, Step: 0.05},
})

func (p AGIParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	// A trajectory takes two rows: the derivatives of the false class and of the explained output.
	trajectories := n.PerHead()/max(1, n.PerHead()/p.Classes) + 1
	q, err := p.atImage(ctx, e, n, p.Common)
	if err != nil {
		return err
	}
	g, err := n.Gradient(ctx, e.Slot, q, n.Fit(2*trajectories, e.Batch))
	if err != nil {
		return err
	}
	x := make([]float32, n.Size())
	for i := range e.Len() {
		t, err := p.target(e, i, n)
		if err != nil {
			return err
		}
		if err := image(e, i, n, x); err != nil {
			return err
		}
		sum := make([]float64, len(x))
		if err := t.NoClass(); err != nil {
			return err
		}
		all := p.trajectories(n, x, t)
		if len(all) == 0 {
			e.WarnItem(i, "the explained class is the only false class, so that its map is zero")
		}
		if err := p.follow(ctx, n, g, all, t); err != nil {
			return err
		}
		for _, w := range all {
			for k, v := range w.sum {
				sum[k] += v
			}
		}
		putMap(e, i, p.reduced(sum, n.Channels, n.Height, n.Width))
	}
	return nil
}

// A trajectory leads from an image to a false class.
type trajectory struct {
	class   int
	from, x []float32 // the normalised image, and the current position
	sum     []float64 // the attribution: the drop of the explained output per value
	arrived bool
}

// trajectories returns the trajectories from an image to the false classes.
func (p AGIParams) trajectories(n *program.Net, x []float32, t program.Target) []*trajectory {
	var all []*trajectory
	first := n.First(t.Class) // of the target's head
	for class := first; class < first+n.PerHead(); class += max(1, n.PerHead()/p.Classes) {
		if class != t.Class {
			all = append(all, &trajectory{class, x, append([]float32(nil), x...), make([]float64, len(x)),
				false})
		}
	}
	return all
}

// follow runs all trajectories to their ends, one step of each at a time.
func (p AGIParams) follow(ctx context.Context, n *program.Net, g program.Gradient, all []*trajectory,
	t program.Target) error {
	for range p.Steps {
		var queries []gradientQuery
		for _, w := range all {
			if !w.arrived {
				queries = append(queries, gradientQuery{w.x, program.Target{Class: w.class, Minus: -1}},
					gradientQuery{w.x, t})
			}
		}
		results, err := derivatives(ctx, g, queries)
		if err != nil {
			return err
		}
		k := 0
		for _, w := range all {
			if w.arrived {
				continue
			}
			if w.arrived = results[k].predicted == w.class; !w.arrived {
				p.step(n, w, results[k].gradient, results[k+1].gradient)
			}
			k += 2
		}
	}
	return nil
}

// step moves a trajectory by one step, given the derivatives of the false class and of the explained output.
func (p AGIParams) step(n *program.Net, w *trajectory, uphill, explained []float32) {
	for k, g := range uphill {
		c := k / (n.Height * n.Width)
		least := float64(min(n.Black(c), n.White(c)))
		unit := math.Abs(n.Scale / n.Std[c]) // of a pixel value from 0 to 1
		from := float64(w.x[k])
		if p.Variant == "official" {
			from = float64(w.from[k])
		}
		to := from
		switch {
		case g > 0:
			to += float64(p.Step * unit)
		case g < 0:
			to -= float64(p.Step * unit)
		}
		to = math.Min(math.Max(to, least), least+unit)
		w.x[k] = float32(to)
		w.sum[k] -= float64(float64(explained[k]) * (to - from))
	}
}

// A gradientQuery is an image and the target whose derivative to compute there.
type gradientQuery struct {
	x []float32
	t program.Target
}

// A gradientResult is a derivative and the class that the model predicts for the image.
type gradientResult struct {
	gradient  []float32
	predicted int
}

// derivatives computes the derivatives of any number of queries, batch by batch.
func derivatives(ctx context.Context, g program.Gradient, queries []gradientQuery) ([]gradientResult, error) {
	var results []gradientResult
	for from := 0; from < len(queries); from += g.Batch {
		some := queries[from:min(from+g.Batch, len(queries))]
		for row, a := range some {
			g.Explain(row, a.t)
			copy(g.Image(row), a.x)
		}
		if err := g.Run(ctx); err != nil {
			return nil, err
		}
		for row := range some {
			results = append(results, gradientResult{append([]float32(nil), g.Gradient(row)...),
				program.Predicted(g.Row(row))})
		}
	}
	return results, nil
}
