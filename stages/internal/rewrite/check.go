package rewrite

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// constants are the tensors in a graph and in the graphs of its nodes, weights and Constant nodes, by name.
type constants map[string]*onnxpb.TensorProto

func constantsOf(g *onnxpb.GraphProto) constants {
	c := constants{}
	c.add(g)
	return c
}

func (c constants) add(g *onnxpb.GraphProto) {
	for _, t := range g.Initializer {
		c[t.Name] = t
	}
	for _, n := range g.Node {
		if n.OpType == "Constant" && len(n.Output) == 1 && len(n.Attribute) == 1 && n.Attribute[0].T != nil {
			c[n.Output[0]] = n.Attribute[0].T
		}
		for _, inner := range onnx.Bodies(n) {
			c.add(inner)
		}
	}
}

// shape returns the shape of a constant; false if the value isn't one.
func (c constants) shape(name string) ([]int, bool) {
	if c[name] == nil {
		return nil, false
	}
	return onnx.ShapeOf(c[name]), true
}

// checkNodes refuses invalid nodes of a graph and of the graphs inside them.
func checkNodes(g *onnxpb.GraphProto, c constants) error {
	for _, proto := range g.Node {
		n := onnx.Node{NodeProto: proto}
		if err := checkWindow(n); err != nil {
			return err
		}
		if err := checkNative(n, c); err != nil {
			return err
		}
		for _, inner := range onnx.Bodies(proto) {
			if err := checkNodes(inner, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// widest is how far a window of a convolution or a pool may reach, or move, along an axis. With much larger
// numbers ONNX Runtime would compute for years.
const widest = 1 << 16

// checkWindow refuses attributes of windows that fit no image.
func checkWindow(n onnx.Node) error {
	for _, a := range []struct {
		name  string
		least int
	}{{"kernel_shape", 1}, {"strides", 1}, {"dilations", 1}, {"pads", -widest}, {"output_padding",
		0}, {"output_shape", 0}} {
		for _, v := range n.Ints(a.name) {
			if v < a.least || v > widest {
				return fmt.Errorf("node %s: its %s are %v, and %d to %d are possible", n.Label(), a.name,
					n.Ints(a.name), a.least, widest)
			}
		}
	}
	return nil
}

// checkNative refuses nodes that some releases of ONNX Runtime don't report as an error: they crash the
// process or loop.
func checkNative(n onnx.Node, c constants) error {
	switch n.OpType {
	case "Split":
		if parts := n.Int("num_outputs", len(n.Output)); parts != len(n.Output) {
			return fmt.Errorf("node %s has %d outputs, and its num_outputs is %d", n.Label(), len(n.Output),
				parts)
		}
	case "SplitToSequence":
		if t := c[n.In(1)]; t != nil && len(t.Dims) == 0 {
			if size, err := onnx.Int64s(t); err == nil && len(size) == 1 && size[0] < 1 {
				return fmt.Errorf("node %s cuts into parts of %d", n.Label(), size[0])
			}
		}
	case "Conv", "ConvTranspose", "FusedConv":
		s, ok := c.shape(n.In(1))
		if ok && len(s) < 3 {
			return fmt.Errorf("node %s: its weights have %d dimensions, and need at least 3", n.Label(),
				len(s))
		}
		if slices.Contains(s, 0) {
			return fmt.Errorf("node %s: its weights have the shape %v, which has no elements", n.Label(), s)
		}
	}
	if n.Domain == "com.microsoft" {
		return checkFused(n, c)
	}
	return nil
}

func checkShape(v onnx.Value) error {
	known := slices.DeleteFunc(slices.Clone(v.Shape), func(d int) bool { return d == onnx.Free })
	if !onnx.Possible(known) {
		return fmt.Errorf("%q has the impossible shape %v", v.Name, v.Shape)
	}
	return nil
}
