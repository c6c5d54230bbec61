package perturb

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// ResponseParams are the parameters of [Response]. A stage that implies it may have the same.
type ResponseParams struct {
	stages.Precise
	Target string `yaml:"target" doc:"the class whose response is recorded, unless targets is wired, as model/predict has it: predicted, label, a class's number or name, or a difference"`
}

// Validate refuses a target that is malformed.
func (p ResponseParams) Validate() error { return validTarget(p.Target) }

// Response is the model's response to images as they are, with which responses to altered images are
// compared: it depends on no map.
var Response = program.Stage(stages.Def[ResponseParams]{
	Name: "perturb/response",
	Doc: `the model's response to images as they are

Probability, logit and correctness of the target: a curve of one point, which scores of
one altered image share. perturb/soft-mask and score/completeness imply it.`,
	Definition: stages.Definition{
		Formula: "f(x)", Unit: "an image", Operator: "none",
		Response:  "probability, logit and correctness of the target",
		Reference: "none", Aggregation: "none", Randomness: "none", Undefined: "never",
	},
	Version:  1,
	Relation: stages.Each,
	Device:   true,
	Passes:   stages.Passes{Forward: "1"},
	Inputs: []stages.Port{
		program.ModelPort("the classifier"),
		{Name: "images", Type: stages.Images, Texts: true,
			Doc: "the images, of the model's size, or texts"},
		{Name: "targets", Type: stages.Targets, Optional: true, Else: "model/predict",
			Doc: "the class whose response is recorded; default: the prediction for the original image"},
		{Name: "labels", Type: stages.Labels, Optional: true,
			Doc: "the class for correctness; default: the target"},
	},
	Outputs: []stages.Port{{Name: "curves", Type: stages.Curves,
		Doc: "probability, logit and correctness of the class: [3,1]"}},
	Defaults: ResponseParams{Target: program.PredictedClass},
	Check:    func(p ResponseParams, wired func(string) bool) error { return checkTarget(p.Target, wired) },
	Facts: func(_ ResponseParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		return map[string]stages.Facts{"curves": recorded(stages.Facts{"responses": classResponses,
			"order": "whole", "direction": string(stages.None)}, in)}, nil
	},
	Run: func(ctx context.Context, _ ResponseParams, e *stages.Env) error {
		n, err := program.Load(e)
		if err != nil {
			return err
		}
		f, err := n.Forward(ctx, e.Slot, n.Fit(e.Len(), e.Batch))
		if err != nil {
			return err
		}
		c := newCollector(e, f, 1)
		for i := range e.Len() {
			by, err := responderOf(e, i, n)
			x := make([]float32, n.Size())
			if err == nil {
				by.warn(e, i)
				var t stages.Tensor
				if t, err = stages.DecodeTensor(e.In("images", i)); err == nil {
					err = n.Normalise(t, x)
				}
			}
			if err == nil {
				err = c.add(ctx, i, by, [][]float32{x})
			}
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
		}
		return c.flush(ctx)
	},
})

// validTarget refuses a target that is malformed.
func validTarget(target string) error {
	return program.CheckTarget(target)
}

// checkTarget refuses a target where the port targets is wired.
func checkTarget(target string, wired func(string) bool) error {
	if wired("targets") && target != program.PredictedClass {
		return stages.BadField("target", "target is %s, but the port targets is wired and names the class",
			target)
	}
	return nil
}

// A response is the model's output for the explained class: its probability, its logit, and 1 if the
// prediction is correct, 0 if not. The first two are the value of an expression that is explained.
type response struct{ probability, logit, correct float64 }

// undefined is the response along the curve of a map without an order.
var undefined = response{math.NaN(), math.NaN(), math.NaN()}

// classResponses are the responses of a class, and valueResponse that of an expression: the fact "responses"
// of curves.
const (
	classResponses = "probability,logit,correct"
	valueResponse  = "value"
)

// recorded returns the facts of curves, given those of the inputs. Where an expression is explained the
// curves have its value alone, and its facts.
func recorded(f stages.Facts, in map[string]stages.Facts) stages.Facts {
	of := in["model"]
	if of[program.TargetFact] == "" {
		return f
	}
	f["responses"] = strings.Replace(f["responses"], classResponses, valueResponse, 1)
	for _, name := range []string{program.TargetFact, program.UnitFact, program.LowFact, program.HighFact} {
		f[name] = of[name]
	}
	return f
}

// rowsOf returns the rows of curves before those that aren't responses of the model.
func rowsOf(e *stages.Env) int {
	if e.Facts("model")[program.TargetFact] != "" {
		return 1
	}
	return len(strings.Split(classResponses, ","))
}

// encodeCurve returns the payload of a curve.
func encodeCurve(e *stages.Env, curve []response) []byte {
	return stages.NewTensor(rows(e, curve), rowsOf(e), len(curve)).Encode()
}

// rows returns the responses of a curve, one after the other.
func rows(e *stages.Env, curve []response) []float64 {
	n := len(curve)
	values := make([]float64, 3*n)
	for k, r := range curve {
		values[k], values[n+k], values[2*n+k] = r.probability, r.logit, r.correct
	}
	return values[:n*rowsOf(e)]
}

// A responder reads the responses for one item from the model's outputs.
type responder struct {
	net     *program.Net
	target  program.Target
	correct int // the class of correct predictions
}

// responderOf returns the responder of item i, whose class is on the port targets, and correct on labels.
func responderOf(e *stages.Env, i int, n *program.Net) (r responder, err error) {
	b := e.In("targets", i)
	if b == nil {
		return r, fmt.Errorf("port targets has no item for it")
	}
	r.net = n
	if r.target, err = n.Target(b); err != nil {
		return r, fmt.Errorf("port targets: %w", err)
	}
	r.correct = r.target.Class
	if b := e.In("labels", i); b != nil && n.Head == nil {
		label, err := stages.ScalarOf(b)
		if err != nil {
			return r, fmt.Errorf("port labels: %w", err)
		}
		r.correct = n.First(r.target.Class) + int(label)
	}
	return r, nil
}

// warn warns of a label that isn't a class of the model.
func (r responder) warn(e *stages.Env, i int) {
	if r.net.Head == nil && (r.correct < 0 || r.correct >= r.net.Classes) {
		e.WarnItem(i, "its label is %d, but the model has %d classes: no prediction is correct", r.correct,
			r.net.Classes)
	}
}

// response returns the response for an output of the model.
func (r responder) response(row []float32) response {
	if r.net.Head != nil {
		value := r.net.Head.Value(row, r.target.Frozen)
		return response{probability: value, logit: value, correct: math.NaN()}
	}
	out := response{probability: r.net.Probability(row, r.target), logit: r.net.Logit(row, r.target)}
	if r.net.Label(row, r.target) == r.correct {
		out.correct = 1
	}
	return out
}
