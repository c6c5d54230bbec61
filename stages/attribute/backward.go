package attribute

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// A backwardPass is one backward pass of a method: the question for the model, and the explained class.
type backwardPass struct {
	Common
	question lower.Question
	passStart
}

// A passStart is the start of a backward pass and the factor of its result; the zero value starts at the
// target.
type passStart struct {
	name   string                                          // equal for equal counts
	counts func(classes []float32, t program.Target) error // writes the weight of each class, given a target
	factor passFactor                                      // of the result in the sum of passes
}

// A passFactor is the factor of a pass's result; the zero value is 1.
type passFactor struct {
	times float64 // 0 stands for 1
	toOne bool    // the result is scaled so that its magnitudes sum to 1
}

// vanishing is added to a sum of magnitudes by which a result is divided.
const vanishing = 1e-9

// of returns the factor, given the result.
func (f passFactor) of(result []float32) float64 {
	if !f.toOne {
		return f.sign()
	}
	total := vanishing
	for _, v := range result {
		total += math.Abs(float64(v))
	}
	return f.sign() / total
}

// sign returns the factor of a result that isn't scaled.
func (f passFactor) sign() float64 { return cmp.Or(f.times, 1) }

// from returns the pass from each of the starts.
func (b backwardPass) from(starts []passStart) []backwardPass {
	passes := slices.Repeat([]backwardPass{b}, len(starts))
	for k, s := range starts {
		passes[k].passStart, passes[k].question.Counts = s, s.name
	}
	return passes
}

// A passResult is the result of a backward pass for one image. The next one overwrites its slices.
type passResult struct {
	program.Result
	response float64 // the explained output
	factor   passFactor
}

// summed returns the sum of the results times their factors.
func summed(results []passResult) []float64 {
	values := make([]float64, len(results[0].Gradient))
	for _, r := range results {
		factor := r.factor.of(r.Gradient)
		for i, v := range r.Gradient {
			values[i] += float64(factor * float64(v))
		}
	}
	return values
}

// backwardParams are the parameters of a method that makes its map of the results of backward passes. The
// passes are separate from the map, so that methods can share a forward pass.
type backwardParams interface {
	checked
	backwardPasses(ctx context.Context, e *stages.Env, n *program.Net) ([]backwardPass, error)
	// combine puts the map of item i, given the results of the passes.
	combine(e *stages.Env, i int, n *program.Net, results []passResult) error
}

// onePass returns the pass of rules from the target.
func (p Tapped) onePass(ctx context.Context, e *stages.Env, n *program.Net,
	rules relevance.Policy) ([]backwardPass, error) {
	q, err := p.question(ctx, e, n, rules)
	return []backwardPass{{Common: p.Common, question: q}}, err
}
