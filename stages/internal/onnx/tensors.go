package onnx

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// eachTensor visits every tensor of a model, wherever the format allows one: weights, the values and
// indices of sparse ones, attributes of nodes, defaults of functions' attributes, and all of these in the
// graphs inside nodes.
func eachTensor(m *onnxpb.ModelProto, visit func(*onnxpb.TensorProto) error) error {
	w := tensors{visit}
	for _, f := range m.Functions {
		if err := w.nodes(f.Node); err != nil {
			return err
		}
		if err := w.attributes(f.AttributeProto); err != nil {
			return fmt.Errorf("function %q: %w", f.Name, err)
		}
	}
	return w.graph(m.Graph)
}

// tensors walks over graphs.
type tensors struct {
	visit func(*onnxpb.TensorProto) error
}

func (w tensors) graph(g *onnxpb.GraphProto) error {
	if err := w.all(g.Initializer...); err != nil {
		return err
	}
	if err := w.sparse(g.SparseInitializer...); err != nil {
		return err
	}
	return w.nodes(g.Node)
}

func (w tensors) nodes(nodes []*onnxpb.NodeProto) error {
	for _, n := range nodes {
		if err := w.attributes(n.Attribute); err != nil {
			return fmt.Errorf("node %s: %w", Node{n}.Label(), err)
		}
	}
	return nil
}

func (w tensors) attributes(list []*onnxpb.AttributeProto) error {
	for _, a := range list {
		if err := w.all(a.T); err != nil {
			return err
		}
		if err := w.all(a.Tensors...); err != nil {
			return err
		}
		if err := w.sparse(a.SparseTensor); err != nil {
			return err
		}
		if err := w.sparse(a.SparseTensors...); err != nil {
			return err
		}
		if a.G != nil {
			if err := w.graph(a.G); err != nil {
				return err
			}
		}
		for _, g := range a.Graphs {
			if err := w.graph(g); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w tensors) sparse(list ...*onnxpb.SparseTensorProto) error {
	for _, s := range list {
		if err := w.all(s.GetValues(), s.GetIndices()); err != nil {
			return err
		}
	}
	return nil
}

func (w tensors) all(list ...*onnxpb.TensorProto) error {
	for _, t := range list {
		if t == nil {
			continue
		}
		if err := w.visit(t); err != nil {
			return err
		}
	}
	return nil
}
