package relevance

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// An LRP is a composite of layer-wise relevance propagation: the rules for each type of layer. Bach et al.,
// "On Pixel-Wise Explanations for Non-Linear Classifier Decisions by Layer-Wise Relevance Propagation", PLOS
// ONE 2015; rules and composites are named as in Montavon et al., "Layer-Wise Relevance Propagation: An
// Overview", 2019, and in Zennit.
//
// Layers with weights use Conv, Dense and First. All composites share the other rules:
//
//   - activations pass relevance on unchanged, powers and roots too;
//   - a maximum passes all relevance to the largest element;
//   - sums, means and pools distribute by contribution: xᵢ/(Σx + ε), and lengths, sums of squares and
//     products of elements by theirs, such as xᵢ²/(Σx² + ε);
//   - products with a constant pass relevance on, and divisors are treated as constants;
//   - so are the divisors of normalisations: the deviation of LayerNormalization and
//     InstanceNormalization, the sums of LRN and LpNormalization (Achtibat et al.,
//     "AttnLRP", ICML 2024, proposition 3.4);
//   - products of two values that depend on the image, and Softmax, use Gates.
//
// Other nodes are errors.
type LRP struct {
	Conv, Dense LayerRule
	// First is the rule for layers with weights that no other such layer precedes. If zero, these use Conv or
	// Dense.
	First LayerRule
	// Stabiliser is the ε of contributions, added with the sign of their sum.
	Stabiliser float32
	// Bias lets added constants keep their contribution; otherwise they get no relevance.
	Bias bool
	// Norm is the treatment of BatchNormalization.
	Norm Norm
	// Gates is the treatment of products of values and of Softmax.
	Gates Gates
}

// A Norm is a treatment of BatchNormalization.
type Norm string

const (
	NormFolded Norm = "merged" // folded, formerly merged, into the Conv before it; or else an affine layer
	NormApart  Norm = "apart"  // an affine layer, by the ε-rule
	NormPassed Norm = "passed" // an activation
)

// Gates is a treatment of products of two values that depend on the image.
type Gates string

const (
	// GatesConstant treats gates and attention as constants: the other factor gets all relevance. A gate is
	// computed from a Softmax or from sigmoids alone (gate.go); failing that, it is the factor that is
	// broadcast. Ali et al., "XAI for Transformers", ICML 2022, section 4.
	GatesConstant Gates = "constant"
	// GatesHalved gives each factor one half, and Softmax its derivative times its input. AttnLRP,
	// propositions 3.1 and 3.3.
	GatesHalved Gates = "halved"
)

// A LayerRule propagates relevance through a layer with weights. The zero LayerRule is no rule.
type LayerRule struct {
	Name string // includes the parameters
	back func(b *Builder, l layer, r Value) Value
}

// Policy returns the policy of the composite.
func (p LRP) Policy() Policy {
	var cases []Case
	if p.First.back != nil {
		cases = append(cases, Case{readsImage, p.First.rule(p)})
	}
	cases = append(cases,
		Case{Type("Conv", "ConvTranspose"), p.Conv.rule(p)},
		Case{weighted, p.Dense.rule(p)},
		Case{Type("BatchNormalization"), p.normalisation},
		Case{OfKind(Sum), p.sum},
		Case{oneFactor, pass},
		Case{OfKind(Bilinear), p.product},
		Case{Type("Softmax"), p.softmax},
		Case{OfKind(Affine), p.share},
		Case{Type("LayerNormalization", "InstanceNormalization"), p.normalised},
		Case{Type("Clip", "Div", "LRN", "LpNormalization"), pass},
		Case{activation, pass},
		Case{Type("ReduceL1", "ReduceL2"), p.share},
		Case{powers, p.sharePower},
		Case{OfKind(Move, Select), Gradient},
		Case{func(*Builder, *Op, onnx.Node) bool { return true }, refuse},
	)
	name := fmt.Sprintf("lrp conv %s, dense %s, first %s, stabiliser %g, bias %t, norm %s, gates %s",
		p.Conv.Name, p.Dense.Name, p.First.Name, p.Stabiliser, p.Bias, p.Norm, p.Gates)
	return Policy{Name: name, Cases: cases, Grouped: true, Apart: p.Norm != NormFolded}
}

// readsImage matches layers with weights that no other such layer precedes. A text's embedding has no bounds
// as pixels have: the layers that read it are like all others.
func readsImage(b *Builder, op *Op, n onnx.Node) bool {
	l, ok := b.layer(op, n)
	return ok && b.g.Root == "" && !b.behindWeights(n.Input[l.data])
}

// rule converts a layer's rule to a [Rule].
func (r LayerRule) rule(p LRP) Rule {
	return func(b *Builder, op *Op, n onnx.Node, rel []Value) []Value {
		back := make([]Value, len(n.Input))
		l, ok := b.layer(op, n)
		if !ok {
			b.Fail(n, "its weights depend on the image: layer-wise relevance has no rule for it")
			return back
		}
		if alpha, beta := n.Float("alpha", 1), n.Float("beta", 1); alpha <= 0 || beta < 0 {
			b.Fail(n, "layer-wise relevance has no rule for its factors, alpha %g and beta %g", alpha, beta)
			return back
		}
		l.biasCounts = p.Bias
		back[l.data] = r.back(b, l, rel[0])
		return back
	}
}

// activation matches element-wise functions that relevance may pass unchanged: those that are 0 for 0, where
// all of y is a share of x, and those that nets have as activations.
func activation(b *Builder, op *Op, n onnx.Node) bool {
	switch n.OpType {
	case "Acos", "Acosh", "Cos", "Cosh", "Exp", "Log", "Reciprocal":
		return false
	case "Pow":
		return b.exponents(n, func(p float64) bool { return p > 0 })
	}
	return op.Kind == Activation
}

// oneFactor matches products with a single non-constant factor.
func oneFactor(b *Builder, op *Op, n onnx.Node) bool {
	return n.OpType == "Mul" && (!b.dynamic(n.Input[0]) || !b.dynamic(n.Input[1]))
}

func refuse(b *Builder, _ *Op, n onnx.Node, _ []Value) []Value {
	b.Fail(n, "layer-wise relevance has no rule for it; use a gradient method instead")
	return nil
}

// pass gives all relevance to the first input that depends on the image.
func pass(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
	back := make([]Value, len(n.Input))
	for i, v := range n.Input {
		if b.dynamic(v) {
			back[i] = b.Unbroadcast(r[0], b.Shape(v))
			if i > 0 && n.OpType == "Div" {
				return refuse(b, nil, n, r)
			}
			break
		}
	}
	return back
}
