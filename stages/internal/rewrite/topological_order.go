package rewrite

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// TopologicalOrder sorts the nodes of a model so that each follows the producers of its inputs, stably, and
// checks that the graph is complete: every value has one producer, and there is no cycle. The error names
// the wrong node.
func TopologicalOrder(m *onnx.Model) error {
	g := m.Proto.Graph
	for _, v := range slices.Concat(m.Inputs(), m.Outputs()) {
		if err := checkShape(v); err != nil {
			return err
		}
	}
	made := map[string]bool{}
	for _, v := range g.Input {
		if made[v.Name] {
			return fmt.Errorf("the model has two inputs called %q", v.Name)
		}
		made[v.Name] = true
	}
	weights := map[string]bool{}
	for _, t := range g.Initializer {
		if weights[t.Name] {
			return fmt.Errorf("the model has two weights called %q", t.Name)
		}
		weights[t.Name], made[t.Name] = true, true // a weight may also be listed as an input
	}
	maker := map[string]int{} // the index of the node that makes a value
	for i, proto := range g.Node {
		n := onnx.Node{NodeProto: proto}
		if len(n.Output) == 0 {
			return fmt.Errorf("node %s can't be there", n.Label())
		}
		for _, v := range n.Output {
			if v == "" {
				continue
			}
			if _, twice := maker[v]; twice || made[v] {
				return fmt.Errorf("node %s makes %q, which is made already", n.Label(), v)
			}
			maker[v] = i
		}
	}
	if err := checkNodes(g, constantsOf(g)); err != nil {
		return err
	}
	for _, v := range g.Output {
		if _, ok := maker[v.Name]; !ok && !made[v.Name] {
			return fmt.Errorf("nothing makes the output %q", v.Name)
		}
	}
	return sort(g, made, maker)
}

// sort sorts the nodes of g depth first from each node in turn, so that sorted nodes keep their order.
func sort(g *onnxpb.GraphProto, made map[string]bool, maker map[string]int) error {
	const unseen, open, done = 0, 1, 2
	state := make([]int, len(g.Node))
	ordered := make([]*onnxpb.NodeProto, 0, len(g.Node))
	type frame struct {
		node  int
		takes []string
	}
	for first := range g.Node {
		if state[first] != unseen {
			continue
		}
		state[first] = open
		stack := []frame{{first, onnx.Taken(g.Node[first])}} // a slice, since chains of nodes may be long
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.takes) == 0 {
				state[top.node] = done
				ordered = append(ordered, g.Node[top.node])
				stack = stack[:len(stack)-1]
				continue
			}
			v := top.takes[0]
			top.takes = top.takes[1:]
			if made[v] {
				continue
			}
			i, ok := maker[v]
			switch {
			case !ok:
				return fmt.Errorf("node %s takes %q, which nothing makes",
					onnx.Node{NodeProto: g.Node[top.node]}.Label(), v)
			case state[i] == open:
				return fmt.Errorf("node %s takes %q, which depends on its own output",
					onnx.Node{NodeProto: g.Node[top.node]}.Label(), v)
			case state[i] == unseen:
				state[i] = open
				stack = append(stack, frame{i, onnx.Taken(g.Node[i])})
			}
		}
	}
	g.Node = ordered
	return nil
}
