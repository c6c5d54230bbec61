package relevance

import (
	"maps"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Backward adds to g the nodes that carry relevance from seeds back to the values wrt, and returns where it
// arrives: for each of wrt a value of its shape, "" where nothing does. A seed maps a value of g to the
// relevance it starts with, a value of the same shape. The error is an [*UnsupportedError] if operators on
// the way are unknown.
func Backward(g *onnx.Graph, seeds map[Value]Value, wrt []Value, p Policy) (map[Value]Value, error) {
	return newBuilder(g).backward(seeds, wrt, p)
}

func (b *Builder) backward(seeds map[Value]Value, wrt []Value, p Policy) (map[Value]Value, error) {
	for _, n := range b.g.Proto.Graph.Node {
		b.model = append(b.model, onnx.Node{NodeProto: n})
	}
	if p.Grouped || len(p.Cases) == 0 {
		b.group(seeds, wrt, p.Grouped)
	}
	b.seeds, b.ends = slices.Sorted(maps.Keys(seeds)), wrt
	out := b.Pull(seeds, wrt, p)
	if b.err != nil {
		return nil, b.err
	}
	b.flush(slices.Collect(maps.Values(out))...)
	return out, nil
}

// Pull is [Backward] within a rule: it emits the way of relevance from some values of the model back to
// others, by a policy that may be another one.
func (b *Builder) Pull(seeds map[Value]Value, wrt []Value, p Policy) map[Value]Value {
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
	arrived := map[Value]Value{}
	for v, r := range seeds {
		arrived[v] = r
	}
	b.walk(path, arrived, p)
	out := map[Value]Value{}
	for _, v := range wrt {
		out[v] = arrived[v]
	}
	return out
}

// path returns which of the nodes relevance flows through, from the seeds backwards, and those of them whose
// operators nobody has taught us.
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
			for _, v := range onnx.Taken(n.NodeProto) { // go on, to name all at once
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

// walk carries relevance through nodes, the last one first, to where it arrives.
func (b *Builder) walk(path []onnx.Node, arrived map[Value]Value, p Policy) {
	for _, n := range path {
		b.pass(n, arrived, p)
	}
}

// pass carries relevance through a node. Operators and rules rely on nodes that are as ONNX says; a model
// file needn't be, and ONNX Runtime sees some of that only when it runs it.
func (b *Builder) pass(n onnx.Node, arrived map[Value]Value, p Policy) {
	defer b.malformed(n)
	r := make([]Value, len(n.Output))
	some := false
	for i, v := range n.Output {
		r[i] = arrived[v]
		some = some || r[i] != ""
	}
	if !some || b.err != nil {
		return
	}
	op := b.op(n)
	b.at(n)
	back := p.rule(b, op, n)(b, op, n, r)
	if b.accounts && p.Name == b.accountsOf && b.err == nil {
		b.enterLedger(n, r, back)
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
		if got, want := b.Shape(back[i]), b.g.Shape(v); !slices.Equal(got, want) {
			b.Fail(n, "the relevance of input %d has shape %v, not %v", i, got, want)
			continue
		}
		if arrived[v] == "" {
			arrived[v] = back[i]
		} else {
			arrived[v] = b.Add(arrived[v], back[i])
		}
	}
}

// prepare has a node compute what its operator's VJP reads besides.
func (b *Builder) prepare(n onnx.Node) {
	defer b.malformed(n)
	if op := b.op(n); op.Prepare != nil {
		op.Prepare(b, n)
	}
}

// malformed, deferred, makes an error of a panic at node n.
func (b *Builder) malformed(n onnx.Node) {
	if p := recover(); p != nil {
		var from, to [][]int
		for _, v := range n.Input {
			from = append(from, b.Shape(v))
		}
		for _, v := range n.Output {
			to = append(to, b.Shape(v))
		}
		b.Fail(n, "its inputs of shapes %v, outputs of shapes %v and attributes don't fit together: %v", from,
			to, p)
	}
}

// op returns the operator of a node, nil if nobody has taught us.
func (b *Builder) op(n onnx.Node) *Op {
	if g, ok := b.groups[n.Output[0]]; ok {
		return g.op
	}
	if n.Domain != "" && n.Domain != "ai.onnx" {
		return nil
	}
	return b.ops[n.OpType]
}

// reaches returns the values that depend on one of from, these included.
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
