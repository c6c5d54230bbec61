package relevance

import (
	"maps"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Backward adds to g the nodes that propagate relevance from seeds to the values wrt, and returns for each of
// wrt its relevance, a value of the same shape, or "" for none. A seed maps a value of g to its initial
// relevance, a value of the same shape. The error is an [*UnsupportedError] if an operator in between has no
// registered [Op].
func Backward(g *onnx.Graph, seeds map[Value]Value, wrt []Value, p Policy) (map[Value]Value, error) {
	return Without{}.Backward(g, seeds, wrt, p)
}

// Without says what the emitted nodes do without, because a device lacks it or computes it otherwise.
type Without struct {
	// Indices are the second output of MaxPool, and what ArgMax and ArgMin take of equal elements.
	Indices   bool
	Operators []string // of FusedMatMul, LogSoftmax and Sign
}

// Backward is [Backward] without.
func (w Without) Backward(g *onnx.Graph, seeds map[Value]Value, wrt []Value,
	p Policy) (map[Value]Value, error) {
	b := newBuilder(g)
	b.without = w
	return b.backward(seeds, wrt, p)
}

func (b *Builder) backward(seeds map[Value]Value, wrt []Value, p Policy) (map[Value]Value, error) {
	for _, n := range b.g.Proto.Graph.Node {
		b.model = append(b.model, onnx.Node{NodeProto: n})
	}
	if p.StraightThrough {
		b.pairs()
	}
	if p.Grouped || p.Slopes || len(p.Cases) == 0 {
		b.group(seeds, wrt, p.Grouped)
	}
	b.seeds, b.wrt = slices.Sorted(maps.Keys(seeds)), wrt
	b.fixOthers(seeds)
	out := b.Propagate(seeds, wrt, p)
	if b.err != nil {
		return nil, b.err
	}
	if b.unknownTotal {
		b.shares.Total = ""
	}
	results := append(slices.Collect(maps.Values(out)), b.shares.Planes...)
	if b.shares.Total != "" {
		results = append(results, b.shares.Total)
	}
	b.flush(results...)
	return out, nil
}

// fixOthers has what doesn't depend on a text's embedding, such as the mask of attention, count as constant.
func (b *Builder) fixOthers(seeds map[Value]Value) {
	if b.g.Root == "" {
		return
	}
	nodes := b.between([]Value{b.g.Inputs()[0].Name}, slices.Collect(maps.Keys(seeds)))
	on := reaches(nodes, append([]Value{b.g.Root}, b.wrt...))
	for _, n := range nodes {
		for _, v := range n.Output {
			b.fixed[v] = !on[v]
		}
	}
}

// Propagate is [Backward] within a rule: it emits the nodes that propagate relevance from some values of the
// model to others by another policy.
func (b *Builder) Propagate(seeds map[Value]Value, wrt []Value, p Policy) map[Value]Value {
	outerFlows, outerNode := b.flows, b.node
	defer func() { b.flows, b.node = outerFlows, outerNode }()
	nodes := b.between(wrt, slices.Collect(maps.Keys(seeds)))
	b.flows = reaches(nodes, wrt)
	path, unknown := b.path(nodes, seeds)
	if unknown != nil {
		if b.err == nil {
			b.err = unsupported(unknown)
		}
		return nil
	}
	for _, n := range path {
		b.prepare(n)
	}
	rel := map[Value]Value{}
	for v, r := range seeds {
		rel[v] = r
	}
	b.walk(path, rel, p)
	out := map[Value]Value{}
	for _, v := range wrt {
		out[v] = rel[v]
	}
	return out
}

// path returns the nodes through which relevance flows, in reverse order, and those of them whose operator
// has no registered Op.
func (b *Builder) path(nodes []onnx.Node, seeds map[Value]Value) (path, unknown []onnx.Node) {
	needed := map[Value]bool{}
	for v := range seeds {
		needed[v] = true
	}
	for _, n := range slices.Backward(nodes) {
		if !slices.ContainsFunc(n.Output, func(v Value) bool { return needed[v] }) ||
			!slices.ContainsFunc(onnx.Taken(n.NodeProto), func(v Value) bool { return b.flows[v] }) {
			continue
		}
		op := b.op(n)
		if op == nil {
			unknown = append(unknown, n)
			for _, v := range onnx.Taken(n.NodeProto) { // continue, to report all at once
				needed[v] = needed[v] || b.flows[v]
			}
			continue
		}
		if op.Kind == Opaque {
			continue
		}
		path = append(path, n)
		for i, v := range n.Input {
			if b.flows[v] && op.Role(i) != Config {
				needed[v] = true
			}
		}
	}
	slices.Reverse(unknown)
	return path, unknown
}

// walk propagates relevance through nodes, given in reverse order.
func (b *Builder) walk(path []onnx.Node, rel map[Value]Value, p Policy) {
	for _, n := range path {
		b.pass(n, rel, p)
	}
}

// pass propagates relevance through a node. Operators and rules rely on well-formed nodes; a malformed model
// makes them panic, which becomes an error: ONNX Runtime detects some malformed nodes only when it runs them.
func (b *Builder) pass(n onnx.Node, rel map[Value]Value, p Policy) {
	defer b.malformed(n)
	r := make([]Value, len(n.Output))
	some := false
	for i, v := range n.Output {
		r[i] = rel[v]
		some = some || r[i] != ""
	}
	if !some || b.err != nil {
		return
	}
	op := b.op(n)
	b.at(n)
	back := p.rule(b, op, n)(b, op, n, r)
	if b.audited && p.Name == b.auditedPolicy && b.err == nil {
		if p.Slopes {
			b.recordEntry(n, b.weighed(n.Output, r), b.weighedInputs(n, r, back))
		} else {
			b.recordEntry(n, r, back)
		}
	}
	if p.Shares != nil && b.err == nil {
		b.share(*p.Shares, op, n, r, back)
	}
	for i, v := range n.Input {
		if !b.flows[v] || op.Role(i) == Config {
			continue
		}
		if i >= len(back) || back[i] == "" {
			if role := op.Role(i); role == Weight || role == Bias {
				b.Fail(n, "its weight %q depends on the image", v)
			}
			continue
		}
		if shape, expected := b.Shape(back[i]), b.g.Shape(v); !slices.Equal(shape, expected) {
			b.Fail(n, "the relevance of input %d has shape %v, not %v", i, shape, expected)
			continue
		}
		if rel[v] == "" {
			rel[v] = back[i]
		} else {
			rel[v] = b.Add(rel[v], back[i])
		}
	}
}

// prepare makes a node compute the additional outputs that its VJP reads.
func (b *Builder) prepare(n onnx.Node) {
	defer b.malformed(n)
	if op := b.op(n); op.Prepare != nil {
		op.Prepare(b, n)
	}
}

// malformed, deferred, converts a panic at node n into an error.
func (b *Builder) malformed(n onnx.Node) {
	if p := recover(); p != nil {
		var from, to [][]int
		for _, v := range n.Input {
			from = append(from, b.Shape(v))
		}
		for _, v := range n.Output {
			to = append(to, b.Shape(v))
		}
		b.Fail(n, "its inputs of shapes %v, outputs of shapes %v and attributes don't match: %v", from, to, p)
	}
}

// op returns the registered operator of a node, or nil.
func (b *Builder) op(n onnx.Node) *Op {
	if g, ok := b.groups[n.Output[0]]; ok {
		return g.op
	}
	if n.Domain != "" && n.Domain != "ai.onnx" {
		return nil
	}
	return b.ops[n.OpType]
}

// reaches returns from and the values that depend on one of it.
func reaches(nodes []onnx.Node, from []Value) map[Value]bool {
	out := map[Value]bool{}
	for _, v := range from {
		out[v] = true
	}
	for _, n := range nodes {
		if slices.ContainsFunc(onnx.Taken(n.NodeProto), func(v Value) bool { return out[v] }) {
			for _, v := range n.Output {
				out[v] = true
			}
		}
	}
	delete(out, "")
	return out
}
