package model

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/target"
)

// PredictParams are the parameters of [Predict].
type PredictParams struct {
	Target string `yaml:"target" doc:"the class: predicted, predicted:2 for the second best, label, a class's number or name, or a difference such as 7-3, tench - goldfish, predicted-predicted:2 or, if all images are misclassified, predicted-label"`
}

// Validate rejects a target that doesn't parse.
func (p PredictParams) Validate() error {
	return program.CheckTarget(p.Target)
}

// Predict is the stage that runs a model and selects a class for every image. The engine inserts it before
// stages that need to know which class to explain.
var Predict = program.Stage(stages.Def[PredictParams]{
	Name: "model/predict",
	Doc: `the class that a model predicts for every image

Ties go to the class with the smaller number. The probability is computed from the
logits in double precision. This stage also selects the class that a method explains,
by the method's parameter target. A difference of two classes is two numbers on the
port targets.`,
	Version:  1,
	Passes:   stages.Passes{Forward: "1"},
	Relation: stages.Each,
	Device:   true,
	Inputs: []stages.Port{
		program.ModelPort("the classifier"),
		{Name: "images", Type: stages.Images, Texts: true, Doc: "images of the model's size, or texts"},
		{Name: "labels", Type: stages.Labels, Doc: "the labels, if target contains label", Optional: true},
		{Name: "masks", Type: stages.Masks, Optional: true, Added: true,
			Doc: "what the word mask is in an expression"},
		{Name: "other", Type: stages.Images, Optional: true, Added: true,
			Doc: "the image that other(…) is of in an expression"},
	},
	Outputs: []stages.Port{
		{Name: "targets", Type: stages.Targets,
			Doc: "the class, or two whose difference is explained, or what an expression freezes"},
		{Name: "probability", Type: stages.Scores,
			Doc: "its probability, or the difference of two; of an expression its value"},
	},
	Defaults: PredictParams{Target: program.PredictedClass},
	Check: func(p PredictParams, wired func(string) bool) error {
		if x, err := program.ParseExpression(p.Target); err == nil && !target.Is(p.Target) && x.Labelled() &&
			!wired("labels") {
			return stages.BadField("target", "target is %s, but labels isn't wired", p.Target)
		}
		return nil
	},
	Facts: func(p PredictParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Unit: "probability", Direction: stages.None, Low: 0, High: 1, Tolerance: 1e-4}
		if of := in["model"]; of[program.TargetFact] != "" {
			m = stages.Measure{Unit: of[program.UnitFact], Direction: stages.None, Tolerance: 1e-3}
			m.Low, m.High = program.Bounds(of)
		} else if x, err := program.ParseExpression(p.Target); err == nil && x.Compares() {
			m.Low = -1
		}
		return map[string]stages.Facts{"probability": m.Facts(nil)}, nil
	},
	Run: runPredict,
})

// warnOfTokeniser warns if texts are of a tokeniser with fewer ids than the model has vectors for.
func warnOfTokeniser(e *stages.Env) {
	own, err := strconv.Atoi(e.Facts("model")["vocabulary"])
	known, failed := strconv.Atoi(e.Facts("images")["vocabulary"])
	if err == nil && failed == nil && known < own {
		e.Warn("the tokeniser of the texts has %d ids, and the model knows %d: is it the model's own?",
			known, own)
	}
}

func runPredict(ctx context.Context, p PredictParams, e *stages.Env) error {
	n, err := program.Load(e)
	if err != nil {
		return err
	}
	if n.Head != nil {
		return p.freeze(ctx, e, n)
	}
	x, err := program.ParseExpression(p.Target)
	if err == nil {
		x, err = x.Resolve(e.Facts("model")["labels"], e.Facts("labels")["labels"])
	}
	if err != nil {
		return stages.BadField("target", "target: %w", err)
	}
	warnOfTokeniser(e)
	return eachAnswer(ctx, e, func(n *program.Net, i int, row []float32) error {
		if err := x.Fits(n.Classes); err != nil {
			return stages.BadField("target", "target: %w", err)
		}
		if slices.ContainsFunc(row, func(v float32) bool { return math.IsNaN(float64(v)) }) {
			return fmt.Errorf("item %q: the model's output contains NaN", e.Calls[i].ID)
		}
		label := e.In("labels", i)
		if x.Labelled() && label == nil {
			return fmt.Errorf("item %q: target is %s, but port labels has no item for it",
				e.Calls[i].ID, p.Target)
		}
		t, err := x.Target(row, label, n.Classes)
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		e.Put("targets", i, t.Payload())
		e.Put("probability", i, stages.Scalar(n.Probability(row, t)))
		return nil
	})
}

// eachAnswer runs the model on the port images, batch by batch, and calls use with its answer to each image.
func eachAnswer(ctx context.Context, e *stages.Env,
	use func(n *program.Net, i int, row []float32) error) error {
	n, err := program.Load(e)
	if err != nil {
		return err
	}
	return answers(ctx, e, n, "images", use)
}

// answers does so for a net and the images on a port.
func answers(ctx context.Context, e *stages.Env, n *program.Net, port string,
	use func(n *program.Net, i int, row []float32) error) error {
	p, err := n.Forward(ctx, e.Slot, n.Fit(e.Len(), e.Batch))
	if err != nil {
		return err
	}
	for from := 0; from < e.Len(); from += p.Batch {
		to := min(from+p.Batch, e.Len())
		for i := from; i < to; i++ {
			image, err := stages.DecodeTensor(e.In(port, i))
			if err == nil {
				err = n.Normalise(image, p.Image(i-from))
			}
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
		}
		if err := p.Run(ctx); err != nil {
			return err
		}
		for i := from; i < to; i++ {
			if err := use(n, i, p.Row(i-from)); err != nil {
				return err
			}
		}
		if port == "images" {
			e.Done(to - from)
		}
	}
	return nil
}

// RandomClassParams are the parameters of [RandomClass], which has none.
type RandomClassParams struct{}

// RandomClass draws another class for every image.
var RandomClass = stages.New(stages.Def[RandomClassParams]{
	Name: "model/random-class",
	Doc: `another class for every image, drawn at random

Any class but the target, each as likely as the others; of a model with several heads, one
of the same head. Wired to the targets of a method it makes the random logit test: a map
that stays the same for another class doesn't explain the class. score/ssim and
score/rank-correlation compare the two maps. The draw depends on the experiment's seed
and the image. Sixt, Granz and Landgraf, "When Explanations Lie", ICML 2020.`,
	Version:  1,
	Relation: stages.Each,
	Seeded:   true,
	Inputs: []stages.Port{
		{Name: "model", Type: stages.Model, Doc: "the classifier, whose classes are drawn from"},
		{Name: "images", Type: stages.Images, Texts: true, Doc: "the images, or texts"},
		{Name: "targets", Type: stages.Targets, Optional: true, Else: "model/predict",
			Doc: "the class that isn't drawn; default: the prediction for the original image"},
	},
	Outputs: []stages.Port{{Name: "targets", Type: stages.Targets, Doc: "the drawn class"}},
	Run: func(_ context.Context, _ RandomClassParams, e *stages.Env) error {
		n, err := program.LoadClasses(e)
		if err != nil {
			return err
		}
		for i := range e.Len() {
			t, err := n.Target(e.In("targets", i))
			if err == nil && n.PerHead() < 2 {
				err = fmt.Errorf("the model has no other class")
			}
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			first := n.First(t.Class)
			class := e.Rand("class", i).IntN(n.PerHead() - 1)
			if class >= t.Class-first {
				class++
			}
			other := []int64{int64(class)}
			if n.Heads > 0 {
				other = []int64{int64(class), -1, int64(first / n.PerHead())}
			}
			e.Put("targets", i, stages.NewTensor(other, len(other)).Encode())
			e.Done(1)
		}
		return nil
	},
})

// ChangeParams are the parameters of [Change].
type ChangeParams struct {
	Layer   string  `yaml:"layer" doc:"the layer that stands for the representation: middle, final, or the name of any value of the model's graph"`
	Epsilon float64 `yaml:"epsilon" doc:"what a value of 0 counts as where changes are divided by it" min:"0.000000000001" max:"1"`
}

// Change is the stage that measures how far a model moves between two images.
var Change = program.Stage(stages.Def[ChangeParams]{
	Name: "model/change",
	Doc: `how far a model moves from an image to an altered one

The denominators of score/relative-stability, which depend on no map: the relative change
of the model's input, ‖(x − x′)/x‖₂, the change of its outputs, ‖h − h′‖₂ of the logits, and
the relative change of a layer, ‖(z − z′)/z‖₂; and whether the prediction stays. The input
is the normalised image. Agarwal et al., "Rethinking Stability for Attribution-based
Explanations", 2022.`,
	Version:  1,
	Passes:   stages.Passes{Forward: "2"},
	Relation: stages.Each,
	Device:   true,
	// A value of the layer near 0 multiplies what rounding does to it.
	Tolerance: 1e-3,
	Inputs: []stages.Port{
		{Name: "model", Type: stages.Model, Doc: "the classifier"},
		{Name: "images", Type: stages.Images, Doc: "images of the model's size"},
		{Name: "other", Type: stages.Images, Doc: "the same images, altered, as by perturb/noise"},
	},
	Outputs: []stages.Port{{Name: "changes", Type: stages.Changes,
		Doc: "the changes of input, outputs and layer, and whether the prediction stays"}},
	Defaults: ChangeParams{Layer: "final", Epsilon: 1e-6},
	Run:      func(ctx context.Context, p ChangeParams, e *stages.Env) error { return p.run(ctx, e) },
})

// A state is a model's input, outputs and a layer's values for one image.
type state struct{ input, outputs, layer []float32 }

func (p ChangeParams) run(ctx context.Context, e *stages.Env) error {
	n, err := program.LoadClasses(e)
	if err != nil {
		return err
	}
	layer, err := n.Layer(ctx, e.Slot, p.Layer)
	if err != nil {
		return err
	}
	f, err := n.Activated(ctx, e.Slot, layer, n.AtOnce(ctx, e.Slot, n.Fit(2*e.Len(), e.Batch)))
	if err != nil {
		return err
	}
	var states []state // of the images 2·i and their altered images 2·i+1 that are still needed
	for from := 0; from < 2*e.Len(); from += f.Batch {
		to := min(from+f.Batch, 2*e.Len())
		var images [][]float32
		for k := from; k < to; k++ {
			x := make([]float32, n.Size())
			port := []string{"images", "other"}[k%2]
			t, err := stages.DecodeTensor(e.In(port, k/2))
			if err == nil {
				err = n.Normalise(t, x)
			}
			if err != nil {
				return fmt.Errorf("item %q: port %s: %w", e.Calls[k/2].ID, port, err)
			}
			copy(f.Image(k-from), x)
			images = append(images, x)
		}
		if err := f.Run(ctx); err != nil {
			return err
		}
		for k := from; k < to; k++ {
			states = append(states, state{images[k-from], slices.Clone(f.Row(k - from)),
				slices.Clone(f.Value(k - from))})
			if len(states) == 2 {
				e.Put("changes", k/2, stages.NewTensor(p.between(n, states[0], states[1]), 4).Encode())
				e.Done(1)
				states = states[:0]
			}
		}
	}
	return nil
}

// between returns the changes from a state to another, and 1 if both predict one class.
func (p ChangeParams) between(n *program.Net, a, b state) []float64 {
	same := 0.0
	if program.Predicted(a.outputs) == program.Predicted(b.outputs) {
		same = 1
	}
	logits := func(s state) []float64 {
		out := make([]float64, len(s.outputs))
		for c := range out {
			out[c] = n.Logit(s.outputs, program.Target{Class: c, Minus: -1})
		}
		return out
	}
	return []float64{p.relative(a.input, b.input), distance(logits(a), logits(b)),
		p.relative(a.layer, b.layer), same}
}

// relative returns ‖(a − b)/a‖₂.
func (p ChangeParams) relative(a, b []float32) float64 {
	x, y := make([]float64, len(a)), make([]float64, len(a))
	for k, v := range a {
		by := float64(v)
		if v == 0 {
			by = p.Epsilon
		}
		x[k], y[k] = float64(v)/by, float64(b[k])/by
	}
	return distance(x, y)
}

// distance returns ‖a − b‖₂.
func distance(a, b []float64) float64 {
	sum := 0.0
	for k, v := range a {
		d := v - b[k]
		sum += float64(d * d)
	}
	return math.Sqrt(sum)
}
