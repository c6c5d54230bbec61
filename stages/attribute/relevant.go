package attribute

import (
	"context"
	"errors"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// Relevant are the parameters of methods of layer-wise relevance propagation.
type Relevant struct {
	Tapped
	Start      string  `yaml:"start" doc:"what relevance starts with: the explained logit, or 1; of a probability, its derivative with respect to the logits, times these or not" choices:"logit|one-hot"`
	Bias       bool    `yaml:"bias" doc:"biases, and other constants that are added, take a share of the relevance, which then doesn't reach the image"`
	Stabiliser float64 `yaml:"stabiliser" doc:"added to the magnitude of what relevance is divided by, besides the epsilon of the epsilon-rule" min:"0" max:"1000"`
	Norm       string  `yaml:"norm" doc:"BatchNormalization: merged into the Conv before it, an affine layer apart, or passed like an activation; unmerged ones follow the epsilon-rule" choices:"merged|apart|passed"`
	Gates      string  `yaml:"gates" doc:"products of two values, such as attention times values: gates and attention are constants (Ali et al. 2022), or either factor gets half, and softmax follows AttnLRP" choices:"constant|halved"`
}

func relevant() Relevant {
	return Relevant{Tapped: tapped(), Start: "logit", Bias: true, Stabiliser: 1e-6, Norm: string(relevance.NormMerged), Gates: string(relevance.GatesConstant)}
}

// A FirstLayer is the parameter of methods whose rule for the first layer is free.
type FirstLayer struct {
	First string `yaml:"first" doc:"rule of the layers that read the image: the same as of others; box, the zB-rule for pixels between black and white; image-box, between the image's own least and largest value; flat; w-square" choices:"same|box|image-box|flat|w-square"`
}

// rule returns the rule of the first layer for a net, the zero rule for the same.
func (f FirstLayer) rule(n *program.Net, stabiliser float32) relevance.LayerRule {
	switch f.First {
	case "box":
		return relevance.Box(n.Bounds(stabiliser))
	case "image-box":
		return relevance.ImageBox(stabiliser)
	case "flat":
		return relevance.Flat(stabiliser)
	case "w-square":
		return relevance.WSquare(stabiliser)
	}
	return relevance.LayerRule{}
}

// composite returns what makes a composite of the rules of layers.
func (p Relevant) composite(conv, dense, first relevance.LayerRule) relevance.LRP {
	return relevance.LRP{
		Conv: conv, Dense: dense, First: first, Stabiliser: float32(p.Stabiliser),
		Bias: p.Bias, Norm: relevance.Norm(p.Norm), Gates: relevance.Gates(p.Gates),
	}
}

// A share of what relevance started with is undefined where that cancels to less
// than this part of its magnitude.
const cancelled = 1e-6

// relevantOutputs returns the ports of the map and of what is kept of relevance.
func relevantOutputs() []stages.Port {
	return append(outputs(), stages.Port{
		Name: "conservation", Type: stages.Scores,
		Doc: "the sum of relevance that arrives, as a share of what it started with; undefined where that sums to 0",
	})
}

func relevantFacts() (map[string]stages.Facts, error) {
	m := stages.Measure{Unit: "share", Direction: stages.None, Low: math.Inf(-1), High: math.Inf(1), Tolerance: 1e-3}
	return map[string]stages.Facts{"conservation": m.Facts(nil)}, nil
}

// start returns how the program begins.
func (p Relevant) start() program.Start {
	if p.Start == "logit" {
		return program.StartLogits
	}
	return program.StartOnes
}

// A propagation is how a method carries relevance back.
type propagation struct {
	rules  relevance.Policy
	start  program.Start
	passes []descent // which are added up; nil for one from the target
	// positive keeps what is positive of what arrives.
	positive bool
	// conserved says that the sum of what arrives is compared with what it started as.
	conserved bool
}

// A descent is one walk backwards of several.
type descent struct {
	name string // the same for equal counts
	// counts writes how much each class counts for a target.
	counts func(classes []float32, t program.Target) error
	weight func(classes int) float64 // of what arrives; nil for 1
}

// A propagator is a method that carries relevance back. It says how for a net.
type propagator interface {
	tap() Tapped
	propagation(n *program.Net) propagation
}

func (p Tapped) tap() Tapped { return p }

var errOneClass = errors.New("the model has one class, and no others to compare it with")

// waysOf returns the ways back of a propagation.
func (p Tapped) waysOf(ctx context.Context, e *stages.Env, n *program.Net, how propagation) ([]wayBack, error) {
	one, err := p.oneWay(ctx, e, n, how.rules)
	if err != nil {
		return nil, err
	}
	if len(how.passes) > 0 && n.Classes < 2 {
		return nil, errOneClass
	}
	one[0].question.Start = how.start
	var ways []wayBack
	for _, pass := range how.passes {
		w := one[0]
		w.question.Counts, w.counts = pass.name, pass.counts
		ways = append(ways, w)
	}
	if ways == nil {
		return one, nil
	}
	return ways, nil
}

// propagate runs a method that carries relevance back, for every image.
func propagate(ctx context.Context, e *stages.Env, method propagator) error {
	n, err := program.Load(e)
	if err != nil {
		return err
	}
	p, how := method.tap(), method.propagation(n)
	return goBack(ctx, e, n, method, func(i int, d []derivative) error {
		values := make([]float64, len(d[0].Gradient))
		for k, arrived := range d {
			weight := 1.0
			if how.passes != nil && how.passes[k].weight != nil {
				weight = how.passes[k].weight(n.Classes)
			}
			for j, v := range arrived.Gradient {
				values[j] += float64(weight * float64(v))
			}
		}
		if how.conserved {
			share := kept(values, doubles(d[0].Began))
			if lost(share) {
				e.WarnItem(i, "relevance is not conserved: what arrives is %.2g times what it started with; biases and stabilisers may take it, and sums that nearly cancel blow it up: attribute/lrp-conservation names the nodes", share)
			}
			e.Put("conservation", i, stages.Scalar(share))
		}
		if how.positive {
			for k, x := range values {
				values[k] = max(x, 0)
			}
		}
		return p.put(e, i, n, values, d[0].Shape)
	})
}

// lost reports whether less than a tenth, or more than ten times, of the relevance that a
// map started with arrived, whatever the sign. An undefined share is counted as such.
func lost(share float64) bool {
	size := math.Abs(share)
	return size < 0.1 || size > 10
}

// kept returns the sum of what arrived as a share of the sum of what it started as.
func kept(arrived, start []float64) float64 {
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
