package rewrite

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Conditions returns the conditions of a model's Ifs that don't depend on another If.
func Conditions(m *onnx.Model) []string {
	var out []string
	behind := map[string]bool{} // values that depend on an If
	for _, n := range m.Proto.Graph.Node {
		open := slices.ContainsFunc(onnx.Taken(n), func(v string) bool { return behind[v] })
		if n.OpType == "If" && len(n.Input) == 1 && !behind[n.Input[0]] && !slices.Contains(out, n.Input[0]) {
			out = append(out, n.Input[0])
		}
		if open || n.OpType == "If" {
			for _, v := range n.Output {
				behind[v] = true
			}
		}
	}
	return out
}

// InlineBranches replaces every If whose condition is known by the nodes of the branch that it takes, and
// reports whether there was any.
func InlineBranches(m *onnx.Model, known map[string]bool) bool {
	e := &edit{m: m}
	found := false
	for _, proto := range m.Proto.Graph.Node {
		n := onnx.Node{NodeProto: proto}
		if g := branch(n, known); g != nil && len(g.Output) == len(n.Output) {
			e.enter(g, n.Output)
			found = true
		} else {
			e.keep(n)
		}
	}
	m.Proto.Graph.Node = e.nodes
	return found
}

// branch returns the graph that replaces a node, nil if it isn't an If or its condition isn't known.
func branch(n onnx.Node, known map[string]bool) *onnxpb.GraphProto {
	yes, ok := known[n.In(0)]
	if !ok || n.OpType != "If" {
		return nil
	}
	for _, a := range n.Attribute {
		if a.Name == "then_branch" && yes || a.Name == "else_branch" && !yes {
			return a.G
		}
	}
	return nil
}

// enter moves the weights and nodes of a graph into the model, under new names, and its outputs under the
// given names.
func (e *edit) enter(g *onnxpb.GraphProto, outputs []string) {
	names := map[string]string{}
	for _, t := range g.Initializer {
		names[t.Name] = e.m.Fresh(t.Name)
		t.Name = names[t.Name]
	}
	e.m.Proto.Graph.Initializer = append(e.m.Proto.Graph.Initializer, g.Initializer...)
	for _, n := range g.Node {
		for _, v := range n.Output {
			if v != "" {
				names[v] = e.m.Fresh(v)
			}
		}
	}
	for _, n := range g.Node {
		rename(n, names)
		e.keep(onnx.Node{NodeProto: n})
	}
	for i, v := range g.Output {
		if outputs[i] == "" {
			continue
		}
		from := v.Name
		if to, ok := names[from]; ok {
			from = to
		}
		e.to(outputs[i], "Identity", []string{from})
	}
}

// rename renames the values that a node, or a graph inside it, reads or writes.
func rename(n *onnxpb.NodeProto, names map[string]string) {
	for _, list := range [][]string{n.Input, n.Output} {
		for i, v := range list {
			if to, ok := names[v]; ok {
				list[i] = to
			}
		}
	}
	for _, g := range onnx.Bodies(n) {
		for _, v := range g.Output {
			if to, ok := names[v.Name]; ok {
				v.Name = to
			}
		}
		for _, inner := range g.Node {
			rename(inner, names)
		}
	}
}
