package attribute

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// Balanced is the parameter of all methods that take gradients: the backward pass that computes them.
type Balanced struct {
	Backward relevance.Balance `yaml:"backward" key:"added" doc:"the backward pass of gradients: plain; balanced, of LibraGrad; attn-lrp, cp-lrp or decompx, the balances of these methods; or a mapping {attention: detach | quarter, norm: detach, activation: ratio, product: half, quantize: straight-through}, whose missing keys are plain"`
}

// plain reports whether gradients are derivatives.
func (p Balanced) plain() bool { return p.Backward == relevance.Balance{} }

// rules returns the policy of the backward pass. For a model with nothing that it treats otherwise it is the
// derivative, in the form of other methods, so that they share its result.
func (p Balanced) rules(ctx context.Context, e *stages.Env, n *program.Net) (relevance.Policy, error) {
	if p.plain() {
		return relevance.Derivative(), nil
	}
	g, err := n.Graph(ctx, e.Slot, n.Fit(2, 2))
	if err != nil {
		return relevance.Policy{}, err
	}
	return p.Backward.PolicyFor(g), nil
}

// Remark reports a model for which the backward pass is the plain one.
func (p Balanced) Remark(g *onnx.Graph) string {
	if p.plain() || p.Backward.PolicyFor(g).Slopes {
		return ""
	}
	name, _ := p.Backward.MarshalText() // never an error
	return fmt.Sprintf("the model has nothing that backward: %s treats otherwise, so gradients are plain",
		name)
}

// atImage returns the question for the gradient at the input.
func (p Balanced) atImage(ctx context.Context, e *stages.Env, n *program.Net, c Common) (lower.Question,
	error) {
	rules, err := p.rules(ctx, e, n)
	return lower.Question{Rules: rules, Probability: c.Output == "probability"}, err
}

// Differentiated are the parameters of methods that take gradients at the input or at an inner layer.
type Differentiated struct {
	Tapped
	Balanced
}

// plain returns parameters with plain gradients.
func plain(p Tapped) Differentiated { return Differentiated{Tapped: p} }

// derivative returns the question for the gradient.
func (p Differentiated) derivative(ctx context.Context, e *stages.Env, n *program.Net) (lower.Question,
	error) {
	rules, err := p.rules(ctx, e, n)
	if err != nil {
		return lower.Question{}, err
	}
	return p.question(ctx, e, n, rules)
}

// backwardPasses returns the gradient's pass, which is that of methods without rules.
func (p Differentiated) backwardPasses(ctx context.Context, e *stages.Env,
	n *program.Net) ([]backwardPass, error) {
	rules, err := p.rules(ctx, e, n)
	if err != nil {
		return nil, err
	}
	return p.onePass(ctx, e, n, rules)
}

// Remark reports what [Tapped] does, and a model whose gradients are plain.
func (p Differentiated) Remark(g *onnx.Graph) string {
	if why := p.Tapped.Remark(g); why != "" {
		return why
	}
	return p.Balanced.Remark(g)
}

// declares returns what [Common] declares. What sums to the output less the share of constants isn't compared
// with a reference.
func (p Differentiated) declares(quantity, reference string) stages.Declared {
	if !p.plain() {
		reference = ""
	}
	return p.Common.declares(quantity, reference)
}

// compares returns what [Common] declares of a comparison, under the same condition.
func (p Differentiated) compares(baseline string, in map[string]stages.Declared) stages.Declared {
	if !p.plain() {
		return p.declares(contributionMap, "")
	}
	return p.Common.compares(baseline, in)
}

// GradientCAM are the parameters of class activation maps whose weights are gradients.
type GradientCAM struct {
	CAM
	Balanced
}

func gradientCAM() GradientCAM { return GradientCAM{CAM: defaultCAM()} }

func (p GradientCAM) backwardPasses(ctx context.Context, e *stages.Env,
	n *program.Net) (all []backwardPass, err error) {
	for _, layer := range p.Layer.List() {
		passes, err := Differentiated{p.at(layer), p.Balanced}.backwardPasses(ctx, e, n)
		if err != nil {
			return nil, err
		}
		all = append(all, passes...)
	}
	return all, nil
}

// Remark is that of [Differentiated] about the first layer with one.
func (p GradientCAM) Remark(g *onnx.Graph) string {
	return p.remarkEach(g, func(at Tapped) string { return Differentiated{at, p.Balanced}.Remark(g) })
}

// warnIncomplete warns as the function does, unless gradients aren't derivatives: they needn't be complete.
func (p Balanced) warnIncomplete(e *stages.Env, i int, excess, response, reference float64, cause string) {
	if p.plain() {
		warnIncomplete(e, i, excess, response, reference, cause)
	}
}
