package program

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// misfused returns the fusions of ONNX Runtime that change what a model computes: a Pad
// before an AveragePool becomes padding that counts, so that windows which ceil_mode lets
// reach beyond it are divided by another number than the Pad had them divided by. Release
// 1.29 divides right.
func misfused(m *onnxpb.ModelProto) []string {
	names := func(op string) bool {
		return anyNode(m, func(n *onnxpb.NodeProto) bool { return n.OpType == op })
	}
	if names("AveragePool") && names("Pad") {
		return []string{"Pad_Fusion"}
	}
	return nil
}

// anyNode reports whether one of a model's nodes is so, in a body or a function of its own
// too.
func anyNode(m *onnxpb.ModelProto, is func(*onnxpb.NodeProto) bool) bool {
	var among func(nodes []*onnxpb.NodeProto) bool
	among = func(nodes []*onnxpb.NodeProto) bool {
		return slices.ContainsFunc(nodes, func(n *onnxpb.NodeProto) bool {
			return is(n) || slices.ContainsFunc(onnx.Bodies(n), func(g *onnxpb.GraphProto) bool { return among(g.Node) })
		})
	}
	return among(m.Graph.Node) || slices.ContainsFunc(m.Functions, func(f *onnxpb.FunctionProto) bool { return among(f.Node) })
}
