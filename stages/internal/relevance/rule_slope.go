package relevance

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// LayerRules are rules of layer-wise relevance propagation for layers with weights in a gradient. The zero
// LayerRule stands for the derivative.
type LayerRules struct {
	Conv, Dense LayerRule
	// Projections has Dense for the linear layers of attention too: those that make queries, keys and values,
	// and those that read the weighted values.
	Projections bool
}

// PolicyWith returns the policy of the Balance with rules for layers with weights.
func (p Balance) PolicyWith(l LayerRules) Policy {
	text, _ := p.MarshalText() // never an error
	policy := Policy{
		Name: fmt.Sprintf("backward %s, conv %s, dense %s, projections %t", text, l.Conv.Name, l.Dense.Name,
			l.Projections),
		Cases: balancing{p}.cases(), Slopes: true, Grouped: true,
	}
	var cases []Case
	if l.Conv.back != nil {
		cases = append(cases, Case{convolution, l.Conv.slope()})
	}
	if l.Dense.back != nil {
		cases = append(cases, Case{l.dense, l.Dense.slope()})
	}
	policy.Cases = append(cases, policy.Cases...)
	return policy
}

// convolution matches convolutions with constant weights.
func convolution(b *Builder, op *Op, n onnx.Node) bool {
	_, ok := b.layer(op, n)
	return ok && Type("Conv", "ConvTranspose")(b, op, n)
}

// dense matches other layers with constant weights.
func (l LayerRules) dense(b *Builder, op *Op, n onnx.Node) bool {
	of, ok := b.layer(op, n)
	return ok && !Type("Conv", "ConvTranspose")(b, op, n) && (l.Projections || !b.projection(of))
}

// minInput keeps the quotient of relevance and a value finite, as the code of AttnLRP does.
const minInput = 1e-10

// slope is the rule for a gradient: relevance is the gradient times the value.
func (r LayerRule) slope() Rule {
	rule := r.rule(LRP{Bias: true})
	return func(b *Builder, op *Op, n onnx.Node, g []Value) []Value {
		back := rule(b, op, n, []Value{b.Mul(g[0], n.Output[0])})
		for i, v := range back {
			if v != "" {
				back[i] = b.quotient(v, n.Input[i], minInput, anySign)
			}
		}
		return back
	}
}

// projection reports whether a linear layer makes a factor of a product of two values, or reads one.
func (b *Builder) projection(l layer) bool {
	return b.madeByProduct(l.x()) || b.feedsProduct(l.n.Output[0])
}

// products matches matrix products of two values.
func products(b *Builder, n onnx.Node) bool {
	return (n.OpType == "MatMul" || n.OpType == "Einsum") && b.dynamic(n.Input[0]) && b.dynamic(n.Input[1])
}

// madeByProduct reports whether v is a matrix product of two values, possibly moved or rescaled.
func (b *Builder) madeByProduct(v Value) bool {
	for {
		n, _, ok := b.producer(v)
		switch {
		case !ok || b.op(n) == nil:
			return false
		case products(b, n):
			return true
		case b.op(n).Kind != Move && !rescales(b, b.op(n), n):
			return false
		}
		v = n.Input[0]
	}
}

// feedsProduct reports whether v, possibly moved or rescaled, is a factor of a matrix product of two values.
func (b *Builder) feedsProduct(v Value) bool {
	for _, k := range b.readers(v) {
		n := b.model[k]
		op := b.op(n)
		if products(b, n) {
			return true
		}
		if op.Kind == Move || rescales(b, op, n) {
			for _, y := range n.Output {
				if b.feedsProduct(y) {
					return true
				}
			}
		}
	}
	return false
}
