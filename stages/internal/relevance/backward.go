package relevance

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Backward adds to g the nodes that carry relevance from seeds back to the values
// wrt, and returns where it arrives: for each of wrt a value of its shape, ""
// where nothing does. A seed maps a value of g to the relevance it starts with, a
// value of the same shape. The error is an [*UnsupportedError] if operators on
// the way are unknown.
func Backward(g *onnx.Graph, seeds map[Value]Value, wrt []Value, p Policy) (map[Value]Value, error) {
	b := newBuilder(g)
	nodes := g.Proto.Graph.Node
	flows := reaches(nodes, wrt)
	needed := map[Value]bool{}
	for v := range seeds {
		needed[v] = true
	}
	ops := map[string]*Op{}
	for _, o := range All() {
		ops[o.Type] = o
	}
	var path []onnx.Node // from the seeds backwards
	var unknown []string
	for _, proto := range slices.Backward(nodes) {
		n := onnx.Node{NodeProto: proto}
		if !slices.ContainsFunc(n.Output, func(v Value) bool { return needed[v] }) ||
			!slices.ContainsFunc(n.Input, func(v Value) bool { return flows[v] }) {
			continue
		}
		op := ops[n.OpType]
		if op == nil || n.Domain != "" && n.Domain != "ai.onnx" {
			unknown = append(unknown, n.Label())
			for _, v := range n.Input { // go on, to name all at once
				needed[v] = needed[v] || flows[v]
			}
			continue
		}
		if op.Kind == Opaque {
			continue
		}
		path = append(path, n)
		for i, v := range n.Input {
			if flows[v] && op.Role(i) != Config {
				needed[v] = true
			}
		}
	}
	if unknown != nil {
		slices.Reverse(unknown)
		return nil, &UnsupportedError{unknown}
	}
	for _, n := range path {
		if op := ops[n.OpType]; op.Prepare != nil {
			op.Prepare(b, n)
		}
	}
	b.flows = flows
	arrived := map[Value]Value{}
	for v, r := range seeds {
		arrived[v] = r
	}
	for _, n := range path {
		r := make([]Value, len(n.Output))
		some := false
		for i, v := range n.Output {
			r[i] = arrived[v]
			some = some || r[i] != ""
		}
		if !some {
			continue
		}
		op := ops[n.OpType]
		b.at(n)
		back := p.rule(g, op, n)(b, op, n, r)
		for i, v := range n.Input {
			if !flows[v] || op.Role(i) == Config {
				continue
			}
			if i >= len(back) || back[i] == "" {
				if role := op.Role(i); role == Weight || role == Bias {
					b.Fail(n, "its weight %q depends on the image", v)
				}
				continue
			}
			if got, want := b.Shape(back[i]), g.Shape(v); !slices.Equal(got, want) {
				return nil, fmt.Errorf("node %s: the relevance of input %d has shape %v, not %v", n.Label(), i, got, want)
			}
			if arrived[v] == "" {
				arrived[v] = back[i]
			} else {
				arrived[v] = b.Add(arrived[v], back[i])
			}
		}
	}
	if b.err != nil {
		return nil, b.err
	}
	b.flush()
	out := map[Value]Value{}
	for _, v := range wrt {
		out[v] = arrived[v]
	}
	return out, nil
}

// reaches returns the values that depend on one of from, these included.
func reaches(nodes []*onnxNode, from []Value) map[Value]bool {
	out := map[Value]bool{}
	for _, v := range from {
		out[v] = true
	}
	for _, n := range nodes {
		if slices.ContainsFunc(n.Input, func(v Value) bool { return out[v] }) {
			for _, v := range n.Output {
				out[v] = true
			}
		}
	}
	delete(out, "")
	return out
}
