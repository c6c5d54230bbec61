package relevance

import (
	"math"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// An Entry is the balance of relevance at a node: values of shape [1], sums over all elements in the batch.
type Entry struct {
	Node, Op  string
	Outputs   Value // relevance of its outputs
	Inputs    Value // relevance of the inputs that depend on wrt
	Constants Value // relevance of biases and other constants; "" for none
	Magnitude Value // sum of the magnitudes of Inputs
}

// Audit is [Without.Backward] and also returns the balance of relevance at every node, from the seeds on.
func (w Without) Audit(g *onnx.Graph, seeds map[Value]Value, wrt []Value,
	p Policy) (map[Value]Value, []Entry, error) {
	b := newBuilder(g)
	b.without = w
	b.audited, b.auditedPolicy = true, p.Name
	rel, err := b.backward(seeds, wrt, p)
	return rel, b.entries, err
}

// recordConstant records relevance of a constant at the current node.
func (b *Builder) recordConstant(v Value) {
	if b.audited {
		b.toConstants = b.plus(b.toConstants, b.total(v))
	}
}

// weighed emits values times the derivatives that are propagated to them. The −∞ with which maxima are padded
// has the derivative 0 and counts 0.
func (b *Builder) weighed(values, slopes []Value) []Value {
	out := make([]Value, len(slopes))
	for i, s := range slopes {
		if s != "" {
			out[i] = b.Mul(b.finite(values[i]), s)
		}
	}
	return out
}

// finite emits v with the largest negative number in the place of −∞.
func (b *Builder) finite(v Value) Value {
	return b.Emit("Max", b.Shape(v), []Value{v, b.Scalar(-math.MaxFloat32)})
}

// weighedInputs is weighed for the inputs of a node, and records the share of its constants.
func (b *Builder) weighedInputs(n onnx.Node, r, back []Value) []Value {
	for _, v := range b.constantShares(n, r, back) {
		if v != "" {
			b.recordConstant(v)
		}
	}
	return b.weighed(n.Input, back)
}

// constantShares emits the share of a node's constants of what is propagated to each output: that times what
// the node returns for inputs of 0, or all that it returns if nothing is propagated through it; "" for none.
func (b *Builder) constantShares(n onnx.Node, r, back []Value) []Value {
	if c, known := b.addend(n, back); known {
		if c == "" {
			return nil
		}
		return b.weighed([]Value{c}, r[:1])
	}
	zeros := map[int]Value{}
	for i, s := range back {
		if s != "" && b.flows[n.Input[i]] {
			zeros[i] = b.scaled(b.finite(n.Input[i]), 0)
		}
	}
	rest := n
	if len(zeros) > 0 {
		rest = b.Copy(n, zeros)
	}
	return b.weighed(rest.Output, r)
}

// recordEntry records the result of a rule on relevance r.
func (b *Builder) recordEntry(n onnx.Node, r, back []Value) {
	e := Entry{Node: n.Name, Op: n.OpType, Constants: b.toConstants}
	if e.Node == "" {
		e.Node = n.Output[0]
	}
	b.toConstants = ""
	for _, v := range r {
		if v != "" {
			e.Outputs = b.plus(e.Outputs, b.total(v))
		}
	}
	for i, v := range back {
		if v != "" && b.flows[n.Input[i]] {
			e.Inputs = b.plus(e.Inputs, b.total(v))
			e.Magnitude = b.plus(e.Magnitude, b.total(b.Unary("Abs", v)))
		}
	}
	b.entries = append(b.entries, e)
}

// total emits the sum of all elements of v, of shape [1].
func (b *Builder) total(v Value) Value {
	axes := make([]int, len(b.Shape(v)))
	for i := range axes {
		axes[i] = i
	}
	return b.Reshape(b.Sum(v, axes, false), 1)
}
