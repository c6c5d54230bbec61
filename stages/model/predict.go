package model

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// PredictParams are the parameters of [Predict].
type PredictParams struct {
	Target string `yaml:"target" doc:"the class: predicted, predicted:2 for the second best, label, a class's number or name, or a difference such as 7-3, tench - goldfish, predicted-predicted:2 or, if all images are misclassified, predicted-label"`
}

// Validate rejects a target that doesn't parse.
func (p PredictParams) Validate() error {
	if _, err := program.ParseExpression(p.Target); err != nil {
		return stages.BadField("target", "target: %w", err)
	}
	return nil
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
		{Name: "model", Type: stages.Model, Doc: "the classifier"},
		{Name: "images", Type: stages.Images, Doc: "images of the model's size"},
		{Name: "labels", Type: stages.Labels, Doc: "the labels, if target contains label", Optional: true},
	},
	Outputs: []stages.Port{
		{Name: "targets", Type: stages.Targets, Doc: "the class, or two whose difference is explained"},
		{Name: "probability", Type: stages.Scores, Doc: "its probability, or the difference of two"},
	},
	Defaults: PredictParams{Target: program.PredictedClass},
	Check: func(p PredictParams, wired func(string) bool) error {
		if x, err := program.ParseExpression(p.Target); err == nil && x.Labelled() && !wired("labels") {
			return stages.BadField("target", "target is %s, but labels isn't wired", p.Target)
		}
		return nil
	},
	Facts: func(p PredictParams, _ map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Unit: "probability", Direction: stages.None, Low: 0, High: 1, Tolerance: 1e-4}
		if x, err := program.ParseExpression(p.Target); err == nil && x.Compares() {
			m.Low = -1
		}
		return map[string]stages.Facts{"probability": m.Facts(nil)}, nil
	},
	Run: runPredict,
})

func runPredict(ctx context.Context, p PredictParams, e *stages.Env) error {
	x, err := program.ParseExpression(p.Target)
	if err == nil {
		x, err = x.Resolve(e.Facts("model")["labels"], e.Facts("labels")["labels"])
	}
	if err != nil {
		return stages.BadField("target", "target: %w", err)
	}
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
	p, err := n.Forward(ctx, e.Slot, n.Fit(e.Len(), e.Batch))
	if err != nil {
		return err
	}
	for from := 0; from < e.Len(); from += p.Batch {
		to := min(from+p.Batch, e.Len())
		for i := from; i < to; i++ {
			image, err := stages.DecodeTensor(e.In("images", i))
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
		e.Done(to - from)
	}
	return nil
}
