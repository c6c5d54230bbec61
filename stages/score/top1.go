package score

import (
	"context"
	"fmt"
	"strconv"

	"github.com/runexp/runexp/stages"
)

// Top1Params are the parameters of [Top1].
type Top1Params struct {
	Threshold float64 `yaml:"threshold" doc:"for a model with one output: the probability from which it predicts label 1 rather than 0" min:"0" max:"1"`
}

// Top1 compares predictions with labels.
var Top1 = stages.New(stages.Def[Top1Params]{
	Name: "score/top-1",
	Doc: `whether the prediction is the label

1 if the predicted class is the label, otherwise 0; the mean is the top-1 accuracy.
targets defaults to the model's prediction. A model with one output has two classes, 0
and 1, and predicts 1 if its probability reaches the threshold. With independent classes
the most probable one is the prediction, so that of an image with an item for each of
several labels one item at most is right; dataset/select chooses those whose own
probability reaches 0.5, at_least: 0.5, given targets and probability of a model/predict
with target: label. A label outside the model's classes is an error.`,
	Definition: stages.Definition{
		Formula:     "1 if argmax f(x) is the label, else 0",
		Unit:        "an image",
		Operator:    "none",
		Response:    "the predicted class",
		Reference:   "the label",
		Aggregation: "one prediction; the mean over images is the accuracy",
		Randomness:  "none",
		Undefined:   "never",
	},
	Version:  2,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "labels", Type: stages.Labels, Doc: "the labels"},
		{Name: "model", Type: stages.Model, Doc: "the classifier, if targets isn't wired",
			Optional: true},
		{Name: "images", Type: stages.Images, Texts: true, Doc: "the images or texts, if targets isn't wired",
			Optional: true},
		{Name: "targets", Type: stages.Targets, Doc: "predicted classes", Optional: true,
			Else: "model/predict"},
		{Name: "probability", Type: stages.Scores, Doc: "the probability of the targets, for the threshold",
			Optional: true, Else: "model/predict"},
	},
	Outputs:  []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "1 or 0"}},
	Defaults: Top1Params{Threshold: even},
	Facts: func(_ Top1Params, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1}
		if n, err := strconv.Atoi(in["model"]["classes"]); err == nil && n > 0 {
			m.Chance = 1 / float64(n)
		}
		return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p Top1Params, e *stages.Env) error {
		moved := p.Threshold != even
		if moved && (e.Facts("model")["outputs"] != "1" || !e.Wired("probability")) {
			e.Warn("threshold is ignored: it is for a model with one output, of which the probability is " +
				"known")
			moved = false
		}
		for i := range e.Len() {
			label, err := class(e.In("labels", i))
			if err != nil {
				return fmt.Errorf("item %q: label: %w", e.Calls[i].ID, err)
			}
			if err := checkLabel(label, e.Facts("model")); err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			target, err := class(e.In("targets", i))
			if err == nil && moved {
				target, err = sideOf(target, e.In("probability", i), p.Threshold)
			}
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

// even is the threshold from which class 1 of two is the more probable one.
const even = 0.5

// sideOf returns class 1 of two if its probability reaches a threshold, otherwise 0. payload has the
// probability of either.
func sideOf(class int64, payload []byte, threshold float64) (int64, error) {
	p, err := stages.ScalarOf(payload)
	if class == 0 {
		p = 1 - p
	}
	if err != nil || p < threshold {
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
