package score

import (
	"context"
	"fmt"
	"strconv"

	"github.com/runexp/runexp/stages"
)

// Top1Params are the parameters of [Top1].
type Top1Params struct {
	Threshold float64 `yaml:"threshold" doc:"for a model with a single output: the probability from which it predicts label 1 rather than 0" min:"0" max:"1"`
}

// Top1 compares predictions with labels.
var Top1 = stages.New(stages.Def[Top1Params]{
	Name: "score/top-1",
	Doc: `whether the prediction is the label

1 if the predicted class is the label, otherwise 0; the mean is the top-1 accuracy.
targets defaults to the model's prediction. A model with a single output predicts label
1 if its probability reaches the threshold, otherwise label 0. With independent classes
the most probable one is the prediction. A label outside the model's classes is an
error.`,
	Version:  2,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "labels", Type: stages.Labels, Doc: "the labels"},
		{Name: "model", Type: stages.Model, Doc: "the classifier, if targets isn't wired",
			Optional: true},
		{Name: "images", Type: stages.Images, Doc: "the images, if targets isn't wired",
			Optional: true},
		{Name: "targets", Type: stages.Targets, Doc: "predicted classes", Optional: true,
			Else: "model/predict"},
		{Name: "probability", Type: stages.Scores, Doc: "the probability of a single output",
			Optional: true, Else: "model/predict"},
	},
	Outputs:  []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "1 or 0"}},
	Defaults: Top1Params{Threshold: 0.5},
	Facts: func(_ Top1Params, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1}
		if n, err := strconv.Atoi(in["model"]["classes"]); err == nil && n > 0 {
			m.Chance = 1 / float64(max(n, 2)) // a single output distinguishes two labels
		}
		return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p Top1Params, e *stages.Env) error {
		single := e.Facts("model")["classes"] == "1" && e.Wired("probability")
		for i := range e.Len() {
			label, err := class(e.In("labels", i))
			if err != nil {
				return fmt.Errorf("item %q: label: %w", e.Calls[i].ID, err)
			}
			if single && label != 0 && label != 1 {
				return fmt.Errorf("item %q: the label is %d, but a model with a single output has the "+
					"labels 0 and 1", e.Calls[i].ID, label)
			}
			if err := checkLabel(label, e.Facts("model")); err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			predict := func() (int64, error) { return class(e.In("targets", i)) }
			if single {
				predict = func() (int64, error) { return labelOf(e.In("probability", i), p.Threshold) }
			}
			target, err := predict()
			if err != nil {
				return fmt.Errorf("item %q: prediction: %w", e.Calls[i].ID, err)
			}
			correct := 0.0
			if label == target {
				correct = 1
			}
			e.Put("scores", i, stages.Scalar(correct))
			e.Done(1)
		}
		return nil
	},
})

// labelOf returns label 1 if a payload's probability reaches a threshold, otherwise 0.
func labelOf(payload []byte, threshold float64) (int64, error) {
	v, err := stages.ScalarOf(payload)
	if err != nil || v < threshold {
		return 0, err
	}
	return 1, nil
}

// class decodes a payload with one class.
func class(payload []byte) (int64, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return 0, err
	}
	if t.DType != stages.I64 || t.Len() != 1 {
		return 0, fmt.Errorf("%s of shape %v isn't one class", t.DType, t.Shape)
	}
	return t.Int64s()[0], nil
}
