package relevance

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// An LRP is a composite of layer-wise relevance propagation: which rule carries relevance through which
// layers. Bach et al., "On Pixel-Wise Explanations for Non-Linear Classifier Decisions by Layer-Wise
// Relevance Propagation", PLOS ONE 2015; the names of rules and composites are those of Montavon et al.,
// "Layer-Wise Relevance Propagation: An Overview", 2019, and of Zennit.
//
// Layers with weights follow Conv, Dense and First. Everything else is treated alike:
//
//   - activations pass on what arrives, whatever they did to the value;
//   - where a maximum was taken, all goes to where it was;
//   - sums, means and pools share by what each operand adds: xᵢ/(Σx + ε);
//   - a factor that is constant passes on, and a divisor counts as constant;
//   - so does what normalisations divide by, the deviation of LayerNormalization and
//     InstanceNormalization, the sums of LRN and LpNormalization (Achtibat et al.,
//     "AttnLRP", ICML 2024, proposition 3.4);
//   - products of two values that depend on the image, and Softmax, follow Gates.
//
// What has none of these forms is refused.
type LRP struct {
	Conv, Dense LayerRule
	// First is for the layers with weights before which there is none; those of the zero rule follow Conv or
	// Dense.
	First LayerRule
	// Stabiliser is the ε of shares, added with the sign of what is shared.
	Stabiliser float32
	// Bias leaves constants that are added their share; otherwise they get nothing.
	Bias bool
	// Norm is how relevance passes a BatchNormalization.
	Norm Norm
	// Gates is how relevance passes products of values and Softmax.
	Gates Gates
}

// A Norm is a treatment of BatchNormalization.
type Norm string

const (
	NormMerged Norm = "merged" // into the Conv before it; as an affine layer where there is none
	NormApart  Norm = "apart"  // as an affine layer, by the ε-rule
	NormPassed Norm = "passed" // as an activation
)

// Gates are a treatment of products of two values that depend on the image.
type Gates string

const (
	// GatesConstant counts gates and attention as constants: all goes to the other factor. A gate is what is
	// made of a Softmax or of sigmoids alone, see gate.go, or else the factor that is repeated. Ali et al.,
	// "XAI for Transformers", ICML 2022, section 4.
	GatesConstant Gates = "constant"
	// GatesHalved gives either factor one half, and takes Softmax's derivative times its input. AttnLRP,
	// propositions 3.1 and 3.3.
	GatesHalved Gates = "halved"
)

// A LayerRule carries relevance through a layer with weights. The zero LayerRule is none.
type LayerRule struct {
	Name string // with its parameters
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
		Case{OfKind(Move, Select), Gradient},
		Case{func(*Builder, *Op, onnx.Node) bool { return true }, refuse},
	)
	name := fmt.Sprintf("lrp conv %s, dense %s, first %s, stabiliser %g, bias %t, norm %s, gates %s",
		p.Conv.Name, p.Dense.Name, p.First.Name, p.Stabiliser, p.Bias, p.Norm, p.Gates)
	return Policy{Name: name, Cases: cases, Grouped: true, Apart: p.Norm != NormMerged}
}

// readsImage matches layers with weights before which there is none.
func readsImage(b *Builder, op *Op, n onnx.Node) bool {
	l, ok := b.layer(op, n)
	return ok && !b.behindWeights(n.Input[l.data])
}

// rule returns a layer's rule as a [Rule].
func (r LayerRule) rule(p LRP) Rule {
	return func(b *Builder, op *Op, n onnx.Node, arrived []Value) []Value {
		back := make([]Value, len(n.Input))
		l, ok := b.layer(op, n)
		if !ok {
			b.Fail(n, "its weights depend on the image, and relevance has no rule for that")
			return back
		}
		if alpha, beta := n.Float("alpha", 1), n.Float("beta", 1); alpha <= 0 || beta < 0 {
			b.Fail(n, "relevance has no rule for its factors, alpha %g and beta %g", alpha, beta)
			return back
		}
		l.counts = p.Bias
		back[l.data] = r.back(b, l, arrived[0])
		return back
	}
}

// activation matches what is applied to each element alone and is known to keep what it says.
func activation(b *Builder, op *Op, n onnx.Node) bool {
	switch n.OpType {
	case "Abs", "Cos", "Exp", "Log", "Pow", "Reciprocal", "Sin", "Sqrt":
		return false
	}
	return op.Kind == Activation
}

// oneFactor matches products of which all factors but one are constants.
func oneFactor(b *Builder, op *Op, n onnx.Node) bool {
	return n.OpType == "Mul" && (!b.dynamic(n.Input[0]) || !b.dynamic(n.Input[1]))
}

func refuse(b *Builder, _ *Op, n onnx.Node, _ []Value) []Value {
	b.Fail(n, "layer-wise relevance has no rule for it; methods that follow the gradient have")
	return nil
}

// pass gives the first input that depends on the image all that arrives.
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
