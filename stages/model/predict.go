package model

import (
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// PredictParams are the parameters of [Predict]: there are none.
type PredictParams struct{}

// Predict is the stage that asks a model for its classes, one for every image.
// Other stages have it put before them to learn which class to explain.
var Predict = stages.New(stages.Def[PredictParams]{
	Name: "model/predict",
	Doc: `the class that a model predicts for every image

Of equal answers the class with the smaller number counts. Its probability is
computed from the logits in double precision.`,
	Version:  1,
	Relation: stages.Each,
	Device:   true,
	Inputs: []stages.Port{
		{Name: "model", Type: stages.Model, Doc: "the classifier"},
		{Name: "images", Type: stages.Images, Doc: "images of the model's size"},
	},
	Outputs: []stages.Port{
		{Name: "targets", Type: stages.Targets, Doc: "the predicted class"},
		{Name: "probability", Type: stages.Scores, Doc: "its probability"},
	},
	Facts: func(PredictParams, map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Unit: "probability", Direction: stages.None, Low: 0, High: 1, Tolerance: 1e-4}
		return map[string]stages.Facts{"probability": m.Facts(nil)}, nil
	},
	Run: runPredict,
})

func runPredict(ctx context.Context, _ PredictParams, e *stages.Env) error {
	return eachAnswer(ctx, e, func(n *program.Net, i int, row []float32) error {
		class := program.Predicted(row)
		if math.IsNaN(float64(row[class])) {
			return fmt.Errorf("item %q: the model's answer is not a number", e.Calls[i].ID)
		}
		e.Put("targets", i, stages.NewTensor([]int64{int64(class)}, 1).Encode())
		e.Put("probability", i, stages.Scalar(n.Probability(row, program.Target{Class: class, Minus: -1})))
		return nil
	})
}

// eachAnswer classifies the items of the port images, a batch at a time, and
// calls use with the model's answer to each.
func eachAnswer(ctx context.Context, e *stages.Env, use func(n *program.Net, i int, row []float32) error) error {
	n, err := program.Load(e)
	if err != nil {
		return err
	}
	p, err := n.Forward(e.Slot, e.Batch)
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
