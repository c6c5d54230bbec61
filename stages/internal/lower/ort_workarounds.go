package lower

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// ortWorkarounds disables the fusions of ONNX Runtime that would change what the program computes.
func (u *unit) ortWorkarounds() error {
	u.signature.Disabled = wrongFusions(u.current().Proto)
	return nil
}

// wrongFusions returns the fusions of ONNX Runtime that change the results of a model, or fail. A Pad
// before an AveragePool becomes padding that counts, so that windows which ceil_mode extends beyond it are
// divided by another number; release 1.29 divides correctly. From opset 21 on, a fusion of a
// DequantizeLinear before a Reshape inserts a QuantizeLinear to unsigned 8 bits, whatever the zero point's
// type is.
func wrongFusions(m *onnxpb.ModelProto) []string {
	names := func(op string) bool {
		return anyNode(m, func(n *onnxpb.NodeProto) bool { return n.OpType == op })
	}
	var wrong []string
	if names("AveragePool") && names("Pad") {
		wrong = append(wrong, "Pad_Fusion")
	}
	if (&onnx.Model{Proto: m}).Opset() >= 21 && slices.ContainsFunc(m.Graph.Initializer,
		func(t *onnxpb.TensorProto) bool { return t.DataType == int32(onnxpb.TensorProto_INT8) }) &&
		names("DequantizeLinear") {
		wrong = append(wrong, "QDQPropagationTransformer")
	}
	return wrong
}

// releaseDependent reports whether supported releases of ONNX Runtime compute a node differently. The
// prepared graph contains other nodes in its place, which all releases compute alike.
func releaseDependent(proto *onnxpb.NodeProto) bool {
	n := onnx.Node{NodeProto: proto}
	switch n.OpType {
	case "AveragePool":
		return rewrite.CountsBeyond(n) // correct from 1.29 on
	case "Attention":
		// Until 1.26 the cap came after the mask, and let masked values through.
		return n.Domain != "com.microsoft" && n.Float("softcap", 0) != 0 &&
			(n.In(3) != "" || n.Int("is_causal", 0) != 0)
	case "FusedConv":
		return n.In(3) != "" // Until 1.26 the sum was added after the activation.
	}
	return false
}

// anyNode reports whether is holds for one of a model's nodes, including the nodes of bodies and of its own
// functions.
func anyNode(m *onnxpb.ModelProto, is func(*onnxpb.NodeProto) bool) bool {
	var among func(nodes []*onnxpb.NodeProto) bool
	among = func(nodes []*onnxpb.NodeProto) bool {
		return slices.ContainsFunc(nodes, func(n *onnxpb.NodeProto) bool {
			return is(n) ||
				slices.ContainsFunc(onnx.Bodies(n), func(g *onnxpb.GraphProto) bool { return among(g.Node) })
		})
	}
	return among(m.Graph.Node) ||
		slices.ContainsFunc(m.Functions, func(f *onnxpb.FunctionProto) bool { return among(f.Node) })
}
