package attribute

import (
	"context"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// AGIParams are the parameters of [AGI].
type AGIParams struct {
	Common
	Variant string  `yaml:"variant" doc:"paper goes on from where a step led; official takes each step from the image" choices:"paper|official"`
	Classes int     `yaml:"classes" doc:"into how many equal parts the classes are cut; the first class of each is a false class; 1 means class 0" min:"1" max:"1000000"`
	Steps   int     `yaml:"steps" doc:"the most steps towards a false class" min:"1" max:"100000"`
	Step    float64 `yaml:"step" doc:"how far a step moves every pixel value, which lie in [0,1]" min:"0.000001" max:"1"`
}

// AGI is the stage of adversarial gradient integration.
var AGI = method(stages.Def[AGIParams]{
	Name: "attribute/agi",
	Doc: `what the answer loses on the way to false classes

From the image, steps of the size of step follow the sign of the false class's
derivative until the model predicts that class or the steps are used up. What each step
takes from the explained number, as its derivative tells, is added up over the steps and
the false classes; there is no baseline. By default it explains the probability. Pan,
Li and Zhu, "Explaining Deep Neural Network Models with Adversarial Gradient
Integration", IJCAI 2021.`,
	Version: 1,
	Variants: []stages.Variant{{
		Item: "where steps begin, and false classes", Default: "paper",
		Differs: "official begins every step at the image itself, so that only derivatives are taken " +
			"elsewhere; the paper draws false classes at random, the authors' code takes every 66th of " +
			"1,000 (classes: 15, steps: 15), that of MAS class 0 alone (classes: 1, steps: 20), so that an " +
			"image of class 0 has a map of zeros",
		Golden: "ig_family",
	}},
	Defaults: AGIParams{Common: probable().Common, Variant: "paper", Classes: 15, Steps: 15, Step: 0.05},
})

func (p AGIParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	if n.Classes < 2 {
		return errOneClass
	}
	// A way takes two rows: the derivatives of the false class and of the explained.
	ways := n.Classes/max(1, n.Classes/p.Classes) + 1
	q := program.Question{Rules: relevance.Derivative(), Probability: p.Output == "probability"}
	g, err := n.Gradient(ctx, e.Slot, q, n.Fit(2*ways, e.Batch))
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
		all := p.ways(n, x, t)
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

// A way leads from an image to a false class.
type way struct {
	class   int
	from, x []float32 // the normalised image, and where the way has come
	sum     []float64 // of what its steps took from the explained number
	arrived bool
}

// ways returns the ways from an image to the false classes.
func (p AGIParams) ways(n *program.Net, x []float32, t program.Target) []*way {
	var all []*way
	for class := 0; class < n.Classes; class += max(1, n.Classes/p.Classes) {
		if class != t.Class {
			all = append(all, &way{class, x, append([]float32(nil), x...), make([]float64, len(x)), false})
		}
	}
	return all
}

// follow goes all ways to their ends, a step of each at a time.
func (p AGIParams) follow(ctx context.Context, n *program.Net, g program.Gradient, all []*way,
	t program.Target) error {
	for range p.Steps {
		var asked []ask
		for _, w := range all {
			if !w.arrived {
				asked = append(asked, ask{w.x, program.Target{Class: w.class, Minus: -1}}, ask{w.x, t})
			}
		}
		answers, err := derivatives(ctx, n, g, asked)
		if err != nil {
			return err
		}
		k := 0
		for _, w := range all {
			if w.arrived {
				continue
			}
			if w.arrived = answers[k].predicted == w.class; !w.arrived {
				p.step(n, w, answers[k].gradient, answers[k+1].gradient)
			}
			k += 2
		}
	}
	return nil
}

// step goes one step of a way, given the derivatives of the false class and of the explained number.
func (p AGIParams) step(n *program.Net, w *way, uphill, explained []float32) {
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

// An ask is a question for the derivative at an image.
type ask struct {
	x []float32
	t program.Target
}

// An answer is a derivative, and the class that the model predicts for the image.
type answer struct {
	gradient  []float32
	predicted int
}

// derivatives answers any number of questions, a batch at a time.
func derivatives(ctx context.Context, n *program.Net, g program.Gradient, asked []ask) ([]answer, error) {
	var answers []answer
	for from := 0; from < len(asked); from += g.Batch {
		some := asked[from:min(from+g.Batch, len(asked))]
		for row, a := range some {
			g.Explain(row, a.t)
			copy(g.Image(row), a.x)
		}
		if err := g.Run(ctx); err != nil {
			return nil, err
		}
		for row := range some {
			answers = append(answers, answer{append([]float32(nil), g.Gradient(row)...),
				program.Predicted(g.Row(row))})
		}
	}
	return answers, nil
}
