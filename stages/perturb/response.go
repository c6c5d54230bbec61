package perturb

import (
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// A response is the model's output for the explained class: its probability, its logit, and 1 if the
// prediction is correct, 0 if not.
type response struct{ probability, logit, correct float64 }

// undefined is the response along the curve of a map without an order.
var undefined = response{math.NaN(), math.NaN(), math.NaN()}

// encodeCurve returns the payload of a curve.
func encodeCurve(curve []response) []byte {
	n := len(curve)
	values := make([]float64, 3*n)
	for k, r := range curve {
		values[k], values[n+k], values[2*n+k] = r.probability, r.logit, r.correct
	}
	return stages.NewTensor(values, 3, n).Encode()
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
	if b := e.In("labels", i); b != nil {
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
	if r.correct < 0 || r.correct >= r.net.Classes {
		e.WarnItem(i, "its label is %d, but the model has %d classes: no prediction is correct", r.correct,
			r.net.Classes)
	}
}

// response returns the response for an output of the model.
func (r responder) response(row []float32) response {
	out := response{probability: r.net.Probability(row, r.target), logit: r.net.Logit(row, r.target)}
	if r.net.Label(row, r.target) == r.correct {
		out.correct = 1
	}
	return out
}
