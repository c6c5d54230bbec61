package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// integers reports whether a type is an integer type supported for images.
func integers(t onnxpb.TensorProto_DataType) bool {
	switch t {
	case onnxpb.TensorProto_INT8, onnxpb.TensorProto_UINT8, onnxpb.TensorProto_INT16,
		onnxpb.TensorProto_UINT16,
		onnxpb.TensorProto_INT32, onnxpb.TensorProto_INT64:
		return true
	}
	return false
}

// readersOf returns the nodes that read an input, directly or through reshapes and casts to wider integers,
// and these casts.
func readersOf(m *onnx.Model, input string) []onnx.Node {
	copies := map[string]bool{input: true}
	var out []onnx.Node
	for _, proto := range m.Proto.Graph.Node { // nodes are in topological order
		n := onnx.Node{NodeProto: proto}
		if !slices.ContainsFunc(onnx.Taken(proto), func(v string) bool { return copies[v] }) {
			continue
		}
		switch n.OpType {
		case "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze":
			if len(n.Output) > 0 {
				copies[n.Output[0]] = true
			}
		default:
			if promoted(n) && len(n.Output) > 0 {
				copies[n.Output[0]] = true
			}
			out = append(out, n)
		}
	}
	return out
}

// promoted reports whether a node casts integers to a type that can represent every pixel.
func promoted(n onnx.Node) bool {
	to := onnxpb.TensorProto_DataType(n.Int("to", 0))
	return n.OpType == "Cast" && (to == onnxpb.TensorProto_INT32 || to == onnxpb.TensorProto_INT64)
}

// continuous changes an integer input to floating point, so that the model can be differentiated with respect
// to it. The new input takes the values that a Cast makes of the integers, possibly through wider integers,
// or those that the scale of a DequantizeLinear or QLinearConv assigns to them. Only QLinearConv rounds the
// new input.
func continuous(m *onnx.Model, in onnx.Value) error {
	if !integers(in.Elem) {
		return nil
	}
	g := m.Proto.Graph
	for _, n := range readersOf(m, in.Name) {
		to := onnxpb.TensorProto_DataType(n.Int("to", 0))
		switch {
		case n.OpType == "Cast" && floating(to), n.OpType == "Shape":
		case promoted(n), n.OpType == "DequantizeLinear":
			n.OpType, n.Domain, n.Input, n.Attribute = "Identity", "", n.Input[:1], nil
		case n.OpType == "QLinearConv":
			q := m.Fresh(in.Name + "/quantised")
			round := onnx.NewNode(q, "QuantizeLinear", []string{n.In(0), n.In(1), n.In(2)}, []string{q})
			g.Node = slices.Insert(g.Node, slices.Index(g.Node, n.NodeProto), round)
			n.Input[0] = q
		default:
			return fmt.Errorf("input %q takes %s and is read by %s: only floating-point inputs are "+
				"supported, and integers that are read by Cast, DequantizeLinear or QLinearConv",
				in.Name, in.Elem, n.Label())
		}
	}
	for _, v := range g.Input {
		if v.Name == in.Name {
			v.GetType().GetTensorType().ElemType = int32(onnxpb.TensorProto_FLOAT)
		}
	}
	m.ForgetShapes()
	return nil
}

// rangeOf returns the real numbers that bytes from 0 to 255, or from -128 to 127, represent at an input, or
// nil if the file doesn't define them.
func rangeOf(m *onnx.Model, in onnx.Value) []float64 {
	least := 0.0
	switch in.Elem {
	case onnxpb.TensorProto_INT8:
		least = -128
	case onnxpb.TensorProto_UINT8:
	default:
		return nil
	}
	constants := map[string]*onnxpb.TensorProto{}
	for _, t := range m.Proto.Graph.Initializer {
		constants[t.Name] = t
	}
	for _, n := range readersOf(m, in.Name) {
		switch n.OpType {
		case "Cast":
			if promoted(n) {
				continue
			}
			return []float64{least, least + 255}
		case "DequantizeLinear", "QLinearConv":
			scale, zero := constants[n.In(1)], constants[n.In(2)]
			if scale == nil || n.In(2) != "" && zero == nil {
				return nil
			}
			step, at := scalarOf(scale), 0.0
			if zero != nil && len(zero.RawData) == 1 {
				at = float64(zero.RawData[0])
				if in.Elem == onnxpb.TensorProto_INT8 {
					at = float64(int8(zero.RawData[0]))
				}
			}
			if math.IsNaN(step) {
				return nil
			}
			return []float64{(least - at) * step, (least + 255 - at) * step}
		}
	}
	return nil
}
