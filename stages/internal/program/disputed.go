package program

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// disputed reports whether releases of ONNX Runtime that are served compute a node
// differently: a graph has other nodes for it, which all compute alike.
func disputed(proto *onnxpb.NodeProto) bool {
	n := onnx.Node{NodeProto: proto}
	switch n.OpType {
	case "AveragePool":
		return rewrite.CountsBeyond(n) // right from 1.29 on
	case "Attention":
		// Until 1.26 the cap came behind the mask, and let through what it masks.
		return n.Domain != "com.microsoft" && n.Float("softcap", 0) != 0 && (n.In(3) != "" || n.Int("is_causal", 0) != 0)
	case "FusedConv":
		return n.In(3) != "" // Until 1.26 the sum was added behind the activation.
	}
	return false
}
