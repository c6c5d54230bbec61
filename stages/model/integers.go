package model

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// integers reports whether values of a type are whole numbers that an image may have.
func integers(t onnxpb.TensorProto_DataType) bool {
	switch t {
	case onnxpb.TensorProto_INT8, onnxpb.TensorProto_UINT8, onnxpb.TensorProto_INT16, onnxpb.TensorProto_UINT16,
		onnxpb.TensorProto_INT32, onnxpb.TensorProto_INT64:
		return true
	}
	return false
}

// continuous has an input of integers take floating-point numbers, so that there is
// something to differentiate with respect to: those that a Cast makes of the integers, or
// those that the integers stand for by the scale of a DequantizeLinear or QLinearConv.
// Only the last rounds what it is fed.
func continuous(m *onnx.Model, in onnx.Value) error {
	if !integers(in.Elem) {
		return nil
	}
	g := m.Proto.Graph
	whole := map[string]bool{in.Name: true} // copies of the input
	nodes := make([]*onnxpb.NodeProto, 0, len(g.Node))
	for _, proto := range g.Node { // a model's nodes are sorted: producers first
		n := onnx.Node{NodeProto: proto}
		if !slices.ContainsFunc(onnx.Taken(proto), func(v string) bool { return whole[v] }) {
			nodes = append(nodes, proto)
			continue
		}
		switch n.OpType {
		case "Cast", "Shape":
		case "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze":
			whole[n.Output[0]] = true
		case "DequantizeLinear":
			n.OpType, n.Domain, n.Input, n.Attribute = "Identity", "", n.Input[:1], nil
		case "QLinearConv":
			q := m.Fresh(in.Name + "/quantised")
			nodes = append(nodes, onnx.NewNode(q, "QuantizeLinear", []string{n.In(0), n.In(1), n.In(2)}, []string{q}))
			n.Input[0] = q
		default:
			return fmt.Errorf("input %q takes %s, and %s reads it: only floating-point inputs are supported, and integers that a Cast, a DequantizeLinear or a QLinearConv makes real numbers of", in.Name, in.Elem, n.Label())
		}
		nodes = append(nodes, proto)
	}
	g.Node = nodes
	for _, v := range g.Input {
		if v.Name == in.Name {
			v.GetType().GetTensorType().ElemType = int32(onnxpb.TensorProto_FLOAT)
		}
	}
	m.ForgetShapes()
	return nil
}
