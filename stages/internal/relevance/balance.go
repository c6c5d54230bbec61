package relevance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// A Balance is the backward pass of a gradient with some of its derivatives exchanged, as LibraGrad does:
// Mehri et al., "LibraGrad: Balancing Gradient Flow for Universally Better Vision Transformer Attributions",
// CVPR 2025. The zero Balance is the gradient.
//
// With all four of LibraGrad's, a net is a linear map of its input and its constants at every image:
// Σ x·g + Σ b·g_b is the explained output, over all values x of the image and all constants b that are added.
type Balance struct {
	// Attention is plain; or Detach: nothing is propagated through Softmax, the weights of values are
	// constants; or Quarter: of products of two matrices each gets half, so that queries and keys get a
	// quarter and values a half. Detach also has matrices, if both are propagated to, get half each.
	Attention Treatment
	// Norm is plain; or Detach: deviations and lengths are constants, and so are all divisors that depend on
	// the image.
	Norm Treatment
	// Activation is plain; or Ratio: an element-wise function has the slope (f(x) − f(0))/x, which is the
	// gate of GELU and SiLU.
	Activation Treatment
	// Product is plain; or Half: each factor of an element-wise product gets half.
	Product Treatment
	// Quantize is plain: activations that are rounded to integers have no derivative, which is an error; or
	// StraightThrough: pairs of QuantizeLinear and DequantizeLinear have that of their bounds.
	Quantize Treatment
}

// A Treatment is what is done with an operator's derivative.
type Treatment string

const (
	Plain   Treatment = "" // the derivative
	Detach  Treatment = "detach"
	Quarter Treatment = "quarter"
	Ratio   Treatment = "ratio"
	Half    Treatment = "half"

	StraightThrough Treatment = "straight-through"
)

// balances are the named ones, in the order of the documentation.
var balances = []struct {
	name string
	Balance
}{
	{"plain", Balance{}},
	{"balanced", Balanced()},
	{"attn-lrp", AttnLRP()},
	{"cp-lrp", Balance{Attention: Detach, Norm: Detach}},
	{"decompx", Balance{Attention: Detach, Norm: Detach, Activation: Ratio}},
}

// Balanced is the Balance of LibraGrad.
func Balanced() Balance {
	return Balance{Attention: Detach, Norm: Detach, Activation: Ratio, Product: Half}
}

// AttnLRP is that of Achtibat et al., "AttnLRP: Attention-Aware Layer-Wise Relevance Propagation for
// Transformers", ICML 2024, section 3.3, as a gradient times input.
func AttnLRP() Balance {
	return Balance{Attention: Quarter, Norm: Detach, Activation: Ratio, Product: Half}
}

// balanceFields are the fields of a Balance as they are written, with the treatments that each can have.
var balanceFields = []struct {
	name   string
	of     func(*Balance) *Treatment
	values []Treatment
}{
	{"attention", func(p *Balance) *Treatment { return &p.Attention }, []Treatment{Detach, Plain, Quarter}},
	{"norm", func(p *Balance) *Treatment { return &p.Norm }, []Treatment{Detach, Plain}},
	{"activation", func(p *Balance) *Treatment { return &p.Activation }, []Treatment{Ratio, Plain}},
	{"product", func(p *Balance) *Treatment { return &p.Product }, []Treatment{Half, Plain}},
	{"quantize", func(p *Balance) *Treatment { return &p.Quantize }, []Treatment{StraightThrough, Plain}},
}

// written is the treatment's name.
func (t Treatment) written() string {
	if t == Plain {
		return "plain"
	}
	return string(t)
}

// MarshalText writes the name, or a mapping of all fields, of which quantize is left out if it is plain: what
// is written stays as it was before there was this field.
func (p Balance) MarshalText() ([]byte, error) {
	for _, b := range balances {
		if b.Balance == p {
			return []byte(b.name), nil
		}
	}
	var parts []string
	for _, f := range balanceFields {
		if f.name == "quantize" && p.Quantize == Plain {
			continue
		}
		parts = append(parts, f.name+": "+f.of(&p).written())
	}
	return []byte("{" + strings.Join(parts, ", ") + "}"), nil
}

// UnmarshalText reads a name, or a mapping of some fields, {attention: detach}; the others are plain.
func (p *Balance) UnmarshalText(text []byte) error {
	t := strings.TrimSpace(string(text))
	inner, mapping := strings.CutPrefix(t, "{")
	if !mapping {
		return p.named(t)
	}
	inner, ok := strings.CutSuffix(inner, "}")
	if !ok {
		return fmt.Errorf("%q has no closing brace", t)
	}
	var read Balance
	set := map[string]bool{}
	for part := range strings.SplitSeq(inner, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, _ := strings.Cut(part, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if set[name] {
			return fmt.Errorf("%s is there twice", name)
		}
		set[name] = true
		if err := read.set(name, value); err != nil {
			return err
		}
	}
	*p = read
	return nil
}

// named reads a name.
func (p *Balance) named(name string) error {
	var names []string
	for _, b := range balances {
		if b.name == name {
			*p = b.Balance
			return nil
		}
		names = append(names, b.name)
	}
	return fmt.Errorf("%q is none of %s, and no mapping such as {attention: detach, norm: detach}", name,
		strings.Join(names, ", "))
}

// set sets the field of a name.
func (p *Balance) set(name, value string) error {
	var names []string
	for _, f := range balanceFields {
		names = append(names, f.name)
		if f.name != name {
			continue
		}
		var valid []string
		for _, t := range f.values {
			if t.written() == value {
				*f.of(p) = t
				return nil
			}
			valid = append(valid, t.written())
		}
		return fmt.Errorf("%s is %q, and may be %s", name, value, strings.Join(valid, " or "))
	}
	return fmt.Errorf("%q is none of %s", name, strings.Join(names, ", "))
}

// Policy returns the policy of the Balance.
func (p Balance) Policy() Policy {
	if p == (Balance{}) {
		return Derivative()
	}
	name, _ := p.MarshalText() // never an error
	return Policy{Name: "backward " + string(name), Cases: balancing{p}.cases(), Slopes: true,
		StraightThrough: p.Quantize == StraightThrough}
}

// PolicyFor returns the policy for a model: that of the gradient, with which results are shared, if the model
// has nothing that the Balance treats otherwise.
func (p Balance) PolicyFor(g *onnx.Graph) Policy {
	policy := p.Policy()
	b := newBuilder(g)
	for _, n := range g.Proto.Graph.Node {
		b.model = append(b.model, onnx.Node{NodeProto: n})
	}
	if policy.StraightThrough {
		b.pairs()
	}
	if len(b.groups) > 0 || // of pairs
		slices.ContainsFunc(b.model, func(n onnx.Node) bool { return b.balanced(policy, n) }) {
		return policy
	}
	return Derivative()
}

// balanced reports whether a rule other than the derivative applies to a node.
func (b *Builder) balanced(p Policy, n onnx.Node) bool {
	defer n.Named()
	op := b.op(n)
	if op == nil || homogeneous(b, op, n) {
		return false
	}
	if (op.Kind == Bilinear || n.OpType == "Gemm") && !(b.dynamic(n.Input[0]) && b.dynamic(n.Input[1])) {
		return false
	}
	return slices.ContainsFunc(p.Cases, func(c Case) bool { return c.Match(b, op, n) })
}
