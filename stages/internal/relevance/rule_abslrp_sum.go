package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// sum applies equation 12 to each summand; the share of constants is dropped.
//
// In the code of December 2024 the identity shortcut s of a residual block isn't detached from the other
// summand m(s): s gets the total derivative, s·d((m(s) + s) + (|m(s)| + |s|))/ds/2. In the backward pass
// through m the statistics of normalisations and the denominators of softmax are constants.
func (a AbsLRP) sum(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	return a.propagate(b, n, r[0], n.Output[0], func(s Value) []Value {
		back := op.VJP(b, n, []Value{s})
		for i, x := range n.Input {
			part := b.positivePartOf(x)
			if n.OpType == "Sub" && i == 1 {
				part = b.negativePart(x) // its contribution is −x
			}
			switch {
			case b.flows[x]:
				back[i] = b.Mul(part, back[i])
			case a.Variant == AbsLRPJanuary:
				back[i] = b.Mul(part, s)
			default:
				back[i] = ""
			}
		}
		if a.Variant != AbsLRPOfficial {
			return back
		}
		if shortcut, way := b.shortcut(n); shortcut >= 0 {
			x, m := n.Input[shortcut], n.Input[way]
			through := b.Propagate(map[Value]Value{m: b.Mul(s, b.Add(b.sign(m), b.Scalar(1)))},
				[]Value{x}, detached())[x]
			if through != "" {
				back[shortcut] = b.Add(back[shortcut], b.scaled(b.Mul(x, through), 0.5))
			}
		}
		return back
	})
}

// shortcut returns the index of the summand of an Add on which the other one depends, and the index of the
// other one; −1 if there is none.
func (b *Builder) shortcut(n onnx.Node) (shortcut, way int) {
	if n.OpType != "Add" || n.Input[0] == n.Input[1] {
		return -1, -1
	}
	for i := range 2 {
		x, m := n.Input[i], n.Input[1-i]
		if b.flows[x] && b.flows[m] && slices.Equal(b.Shape(x), b.Shape(m)) &&
			reaches(b.between([]Value{x}, []Value{m}), []Value{x})[m] {
			return i, 1 - i
		}
	}
	return -1, -1
}

// detached is the policy of derivatives with constant statistics of normalisations and constant denominators
// of softmax.
func detached() Policy {
	return Policy{Name: "detached", Cases: []Case{
		{Type("LayerNormalization", "InstanceNormalization"),
			func(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
				_, deviation := b.statistics(n)
				return []Value{b.Mul(b.Mul(r[0], b.scaleOf(n)), deviation)}
			}},
		{Type("Softmax"), func(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
			return []Value{b.Mul(r[0], n.Output[0])}
		}},
	}}
}

// product applies equation 12 to each factor, with the other one as its weights. An ablation may disable a
// factor.
func (a AbsLRP) product(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	if len(n.Input) != 2 {
		return a.other(b, op, n, r)
	}
	both := n.OpType != "Mul" && b.flows[n.Input[0]] && b.flows[n.Input[1]]
	weights := -1
	if both {
		weights = b.attention(n)
	}
	incoming := r[0]
	if weights >= 0 && a.Variant == AbsLRPJanuary { // the heads are joined, y = x
		incoming = a.keepPositive(b, n, n.Output[0], incoming)
	}
	back := a.propagate(b, n, incoming, n.Output[0], func(s Value) []Value { return a.shares(b, op, n, s) })
	switch {
	case weights >= 0 && a.Ablation == AblationValues:
		back[weights] = ""
	case weights >= 0 && a.Ablation == AblationQueriesKeys:
		back[1-weights] = ""
	}
	if both && a.Variant == AbsLRPJanuary { // queries, keys and values are split into heads, y = x
		for i, v := range back {
			if i != weights && v != "" {
				back[i] = a.keepPositive(b, n, n.Input[i], v)
			}
		}
	}
	return back
}

// attention returns the index of the factor that is computed by a softmax, −1 if neither or both are.
func (b *Builder) attention(n onnx.Node) int {
	first, second := b.fromSoftmax(n.Input[0]), b.fromSoftmax(n.Input[1])
	switch {
	case first == second:
		return -1
	case first:
		return 0
	}
	return 1
}

// fromSoftmax reports whether v is the output of a softmax, possibly moved or rescaled.
func (b *Builder) fromSoftmax(v Value) bool {
	for {
		n, _, ok := b.producer(v)
		if !ok {
			return false
		}
		if n.OpType == "Softmax" {
			return true
		}
		op := b.op(n)
		if op == nil || op.Kind != Move && !rescales(b, op, n) {
			return false
		}
		v = n.Input[0]
	}
}

// makesHeads reports whether a linear layer computes queries, keys and values of tokens, a third of its
// outputs each.
func (b *Builder) makesHeads(n onnx.Node) bool {
	in, out := b.Shape(n.Input[0]), b.Shape(n.Output[0])
	return out[len(out)-1] == 3*in[len(in)-1] && b.reachesAttention(n.Output[0])
}

// reachesAttention reports whether v, possibly moved or rescaled, is multiplied by the output of a softmax.
func (b *Builder) reachesAttention(v Value) bool {
	return memoise(&b.attended, v, b.findAttention)
}

func (b *Builder) findAttention(v Value) bool {
	return slices.ContainsFunc(b.readers(v), func(k int) bool {
		n := b.model[k]
		op := b.op(n)
		if op.Kind == Move || rescales(b, op, n) {
			return slices.ContainsFunc(n.Output, b.reachesAttention)
		}
		return op.Kind == Bilinear && n.OpType != "Mul" && len(n.Input) == 2 && b.attention(n) >= 0
	})
}

// HasAttention reports whether a model multiplies values by the output of a softmax.
func HasAttention(g *onnx.Graph) bool {
	b := newBuilder(g)
	for _, n := range g.Proto.Graph.Node {
		b.model = append(b.model, onnx.Node{NodeProto: n})
	}
	return slices.ContainsFunc(b.model, func(n onnx.Node) bool {
		defer n.Named()
		op := b.op(n)
		return op != nil && op.Kind == Bilinear && n.OpType != "Mul" && len(n.Input) == 2 &&
			b.attention(n) >= 0
	})
}

// PatchEmbedding returns the output of the Conv that embeds patches, or "" if the first Conv has overlapping
// windows.
func PatchEmbedding(g *onnx.Graph) Value {
	i := slices.IndexFunc(g.Proto.Graph.Node, func(n *onnxNode) bool { return n.OpType == "Conv" })
	if i < 0 {
		return ""
	}
	n := onnx.Node{NodeProto: g.Proto.Graph.Node[i]}
	defer n.Named()
	w := newBuilder(g).window(n, g.Shape(n.Input[1])[2:])
	if !w.disjoint() || size(w.kernel) == 1 || len(w.kernel) != 2 {
		return ""
	}
	return n.Output[0]
}
