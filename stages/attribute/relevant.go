package attribute

import (
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// Relevant are the parameters of methods of layer-wise relevance propagation.
type Relevant struct {
	Tapped
	Start      string  `yaml:"start" doc:"the initial relevance: the explained logit, or 1; of a probability, its derivative with respect to the logits, times these or not" choices:"logit|one-hot"`
	Bias       bool    `yaml:"bias" doc:"biases, and other constants that are added, take a share of the relevance, which then doesn't reach the image"`
	Stabiliser float64 `yaml:"stabiliser" doc:"added to the magnitude of denominators, in addition to the epsilon of the epsilon-rule" min:"0" max:"1000"`
	Norm       string  `yaml:"norm" doc:"BatchNormalization: folded into the Conv before it, an affine layer apart, or passed like an activation; as an affine layer, and without a Conv before it, it follows the epsilon-rule" choices:"folded=merged|apart|passed"`
	Gates      string  `yaml:"gates" doc:"products of two values, such as attention times values: gates and attention are constants (Ali et al. 2022), or either factor gets half, and softmax follows AttnLRP" choices:"constant|halved"`
}

func relevant() Relevant {
	return Relevant{Tapped: tapped(), Start: "logit", Bias: true, Stabiliser: 1e-6,
		Norm: string(relevance.NormFolded), Gates: string(relevance.GatesConstant)}
}

// A FirstLayer is the parameter of methods whose first layer may have a rule of its own.
type FirstLayer struct {
	First string `yaml:"first" doc:"rule of the layers that read the image: the same as of others; box, the zB-rule for pixels between black and white; image-box, between the image's own least and largest value; flat; w-square" choices:"same|box|image-box|flat|w-square"`
}

// rule returns the rule of the first layer for a net; the zero rule stands for that of the other layers.
func (f FirstLayer) rule(n *program.Net, stabiliser float32) relevance.LayerRule {
	switch f.First {
	case "box":
		return relevance.Box(n.InputBounds(stabiliser))
	case "image-box":
		return relevance.ImageBox(stabiliser)
	case "flat":
		return relevance.Flat(stabiliser)
	case "w-square":
		return relevance.WSquare(stabiliser)
	}
	return relevance.LayerRule{}
}

// firstRule returns the rule of the first layer, and the parameter that has it.
func (f FirstLayer) firstRule() (rule, field, write string) { return f.First, "first", "first: same" }

// checkRules refuses rules for the layers that read the image where there are texts: they are for pixels, all
// of which count alike or lie between bounds, and the components of an embedding don't.
func checkRules(params any, wired func(string) bool) error {
	p, ok := params.(interface {
		firstRule() (rule, field, write string)
	})
	if !ok || !wired(stages.TextsName) {
		return nil
	}
	rule, field, write := p.firstRule()
	if rule == "same" {
		return nil
	}
	return &stages.FieldError{Field: field, Hint: "write " + write, Err: fmt.Errorf("the rule %s is for "+
		"layers that read pixels, but those of a text read the embedding, which has the rule of the others",
		rule)}
}

// composite returns the composite of the rules of layers.
func (p Relevant) composite(conv, dense, first relevance.LayerRule) relevance.LRP {
	return relevance.LRP{
		Conv: conv, Dense: dense, First: first, Stabiliser: float32(p.Stabiliser),
		Bias: p.Bias, Norm: relevance.Norm(p.Norm), Gates: relevance.Gates(p.Gates),
	}
}

// The share of conserved relevance is undefined where the initial relevance sums to less than this part of
// its magnitude.
const cancelled = 1e-6

// declares returns what the methods declare: relevance is a part of the output if it starts as that.
func (p Relevant) declares() stages.Declared {
	if p.Start != "logit" {
		return nil
	}
	return p.Common.declares(contributionMap, "")
}

// start returns the initial relevance.
func (p Relevant) start() lower.Start {
	if p.Start == "logit" {
		return lower.StartLogits
	}
	return lower.StartOnes
}

// A propagation is how a method propagates relevance through a net.
type propagation struct {
	rules    relevance.Policy
	start    lower.Start
	starts   []passStart // of passes whose results are added up; nil for one from the target
	positive bool        // keeps the positive part of the sum
}

// propagationParams are the parameters of a method that propagates relevance.
type propagationParams interface {
	checked
	tap() Tapped
	propagation(n *program.Net) propagation
}

func (p Tapped) tap() Tapped { return p }

// A propagated method has the backward passes of its propagation.
type propagated struct{ propagationParams }

// backwardOf returns the method of a stage that [backwardMethod] or [propagationMethod] declares, given its
// parameters.
func backwardOf(params any) (backwardParams, error) {
	switch p := params.(type) {
	case propagationParams:
		return propagated{p}, nil
	case backwardParams:
		return p, nil
	}
	return nil, fmt.Errorf("%T are not the parameters of a method with backward passes", params)
}

func (m propagated) backwardPasses(ctx context.Context, e *stages.Env,
	n *program.Net) ([]backwardPass, error) {
	how := m.propagation(n)
	one, err := m.tap().onePass(ctx, e, n, how.rules)
	if err != nil {
		return nil, err
	}
	one[0].question.Start = how.start
	if how.starts == nil {
		return one, nil
	}
	return one[0].from(how.starts), nil
}

func (m propagated) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	values := summed(results)
	if e.Stage.Output("conservation") != nil {
		share := conserved(values, doubles(results[0].Seed))
		warnUnconserved(e, i, share)
		e.Put("conservation", i, stages.Scalar(share))
	}
	if m.propagation(n).positive {
		for k, x := range values {
			values[k] = max(x, 0)
		}
	}
	return m.tap().put(e, i, n, values, results[0].Shape)
}

// conserved returns the sum of the relevance that arrived as a share of the sum that it started with.
func conserved(arrived, start []float64) float64 {
	var sum, began, size float64
	for _, v := range arrived {
		sum += v
	}
	for _, v := range start {
		began += v
		size += math.Abs(v)
	}
	if math.Abs(began) <= cancelled*size {
		return math.NaN()
	}
	return sum / began
}
