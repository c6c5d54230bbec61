package lower

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
	"google.golang.org/protobuf/proto"
)

// pairReference names the reference's value for each value of the graph, so that rules can compare the two.
func (u *unit) pairReference() error {
	var ok bool
	if u.paired, ok = relevance.ReferenceNames(u.graph, u.reference.graph, u.Input); !ok {
		return errors.New("the graph for the reference isn't that for the images")
	}
	u.Rules = relevance.Rescale(u.Official, u.paired)
	return nil
}

// referenceInputs are the inputs of the reference's program.
func referenceInputs(s Shapes) []IO { return []IO{{"reference", s.ImageShape(1)}} }

func referenceImage(*onnx.Fragment) string { return prefix + "reference" }

// splitReference moves the nodes that depend only on the reference to the reference's program. Their values
// that the remaining nodes read become outputs of that program and inputs of this one.
func (u *unit) splitReference() error {
	g, other := u.graph, u.reference.graph
	made := map[string]string{} // by name in g: the name in other
	for v, name := range u.paired {
		made[name] = v
	}
	var rest []*onnxpb.NodeProto
	for _, n := range g.Proto.Graph.Node {
		if !moves(g, n, made) {
			rest = append(rest, n)
			continue
		}
		c := proto.Clone(n).(*onnxpb.NodeProto)
		onnx.Retake(c, made)
		for _, v := range onnx.Taken(n) {
			if w := g.Weight(v); w != nil && made[v] == "" && other.Weight(v) == nil {
				other.Adopt(w, v, g)
			}
		}
		for _, v := range n.Output {
			made[v], other.Types[v] = v, g.Types[v]
		}
		other.Proto.Graph.Node = append(other.Proto.Graph.Node, c)
	}
	g.Proto.Graph.Node = rest

	var read []IO
	inputs := map[string]string{}
	end := other.Fragment()
	for _, n := range rest {
		for _, v := range onnx.Taken(n) {
			there, ok := made[v]
			if !ok {
				continue
			}
			if inputs[v] == "" {
				t := g.Types[v]
				if t.Elem != onnxpb.TensorProto_FLOAT {
					return fmt.Errorf("value %q: its value for the reference isn't a number", there)
				}
				in := IO{"reference_" + strconv.Itoa(len(read)), t.Shape}
				inputs[v] = in.Value()
				read = append(read, in)
				end.OpTo(in.Value(), "Identity", []string{there})
			}
		}
		onnx.Retake(n, inputs)
	}
	other.After(end)
	u.reference.signature.Outputs = slices.Clone(read)
	return u.declare(read)
}

// moves reports whether a node of g depends only on a reference and makes floats, no more than it reads.
func moves(g *onnx.Graph, n *onnxpb.NodeProto, made map[string]string) bool {
	reads := false
	for _, v := range onnx.Taken(n) {
		_, there := made[v]
		reads = reads || there
		if !there && g.Weight(v) == nil {
			return false
		}
	}
	return reads && n.OpType != "Expand" && !slices.ContainsFunc(n.Output, func(v string) bool {
		return g.Types[v].Elem != onnxpb.TensorProto_FLOAT
	})
}

// inlineReference puts the nodes of the reference's graph before the others, and names their values as
// unit.paired says. Weights that the two graphs don't share get new names; inputs keep theirs.
func (u *unit) inlineReference() error {
	g, other, paired := u.graph, u.reference.graph, u.paired
	mine := map[string]*onnxpb.TensorProto{}
	for _, w := range g.Proto.Graph.Initializer {
		mine[w.Name] = w
	}
	name := map[string]string{}
	for _, w := range other.Proto.Graph.Initializer {
		// Most weights of two graphs of one model share their memory.
		if m := mine[w.Name]; m == w || m != nil && proto.Equal(m, w) {
			continue
		}
		c := proto.Clone(w).(*onnxpb.TensorProto)
		c.Name = g.Fresh(w.Name + "/reference")
		name[w.Name] = c.Name
		g.Adopt(c, w.Name, other)
	}
	var nodes []*onnxpb.NodeProto
	for _, n := range other.Proto.Graph.Node {
		c := proto.Clone(n).(*onnxpb.NodeProto)
		onnx.Retake(c, name)
		for i, v := range n.Output {
			if v == "" {
				continue
			}
			if name[v] = paired[v]; paired[v] == "" {
				name[v] = g.Fresh(v + "/reference")
			}
			c.Output[i] = name[v]
		}
		c.Name = c.Output[0]
		nodes = append(nodes, c)
	}
	g.Proto.Graph.Node = append(nodes, g.Proto.Graph.Node...)
	return u.declare(u.reference.signature.Inputs)
}

// referenceValue returns the layer's value for the reference.
func (u *unit) referenceValue() error {
	v := IO{"reference_value", u.shapes[0].LayerShape(u.batch)}
	f := u.graph.Fragment()
	f.OpTo(v.Value(), "Identity", []string{u.Layer})
	u.graph.After(f)
	u.signature.Outputs = append(u.signature.Outputs, v)
	return nil
}
