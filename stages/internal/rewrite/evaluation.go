package rewrite

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Evaluation makes a model's Dropouts do nothing, as outside training, and returns how many were in
// training mode in the file: all programs of a model then run one graph.
func Evaluation(m *onnx.Model) (dropouts int) {
	return evaluation(m.Proto.Graph, constantsOf(m.Proto.Graph))
}

func evaluation(g *onnxpb.GraphProto, c constants) (dropouts int) {
	for _, proto := range g.Node {
		for _, inner := range onnx.Bodies(proto) {
			dropouts += evaluation(inner, c)
		}
		n := onnx.Node{NodeProto: proto}
		if !own(n) || n.OpType != "Dropout" || n.In(2) == "" {
			continue
		}
		if t := c[n.In(2)]; t != nil && len(t.RawData)+len(t.Int32Data) == 1 &&
			!slices.Contains(t.RawData, 1) && !slices.Contains(t.Int32Data, 1) {
			continue
		}
		dropouts++
		if n.Input = n.Input[:2]; n.Input[1] == "" {
			n.Input = n.Input[:1]
		}
	}
	return dropouts
}

func own(n onnx.Node) bool { return n.Domain == "" || n.Domain == "ai.onnx" }

// random are the operators that make other numbers at every call.
var random = []string{"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
	"RandomUniformLike"}

// Random reports whether a node itself makes other numbers at every call.
func Random(n onnx.Node) bool { return own(n) && slices.Contains(random, n.OpType) }

// Deterministic returns an error for a model with a value that differs at every call, since a random number
// is added to it or selects from it.
func Deterministic(m *onnx.Model, value string) error {
	maker := map[string]*onnxpb.NodeProto{}
	for _, n := range m.Proto.Graph.Node {
		for _, v := range n.Output {
			maker[v] = n
		}
	}
	seen := map[string]bool{"": true}
	for open := []string{value}; len(open) > 0; {
		v := open[len(open)-1]
		open = open[:len(open)-1]
		proto := maker[v]
		if seen[v] || proto == nil {
			continue
		}
		seen[v] = true
		if r := randomIn(proto); r != nil {
			return fmt.Errorf("node %s makes other numbers at every call, and the answer depends on them: "+
				"export the model in evaluation mode, or without it", r.Label())
		}
		if proto.OpType != "Shape" && proto.OpType != "Size" {
			open = append(open, onnx.Taken(proto)...)
		}
	}
	return nil
}

// randomIn returns the node that makes random numbers in a node: the node itself, or one inside it; nil if
// there is none.
func randomIn(proto *onnxpb.NodeProto) *onnx.Node {
	n := &onnx.Node{NodeProto: proto}
	if Random(*n) {
		return n
	}
	for _, g := range onnx.Bodies(proto) {
		for _, inner := range g.Node {
			if r := randomIn(inner); r != nil {
				return r
			}
		}
	}
	return nil
}
