package rewrite

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// KernelShapes adds the attribute kernel_shape to convolutions without it, from their weights. Without it,
// ONNX Runtime up to 1.27 crashes if their input has another number of axes; with it, that is an error.
func KernelShapes(m *onnx.Model) {
	kernelShapes(m.Proto.Graph, constantsOf(m.Proto.Graph))
}

func kernelShapes(g *onnxpb.GraphProto, c constants) {
	for _, proto := range g.Node {
		for _, inner := range onnx.Bodies(proto) {
			kernelShapes(inner, c)
		}
		n := onnx.Node{NodeProto: proto}
		s, _ := c.shape(n.In(1))
		if slices.Contains([]string{"Conv", "ConvTranspose", "FusedConv"}, n.OpType) && len(s) > 2 &&
			!n.Has("kernel_shape") {
			n.Attribute = append(n.Attribute, onnx.NewNode("", "", nil, nil,
				onnx.Attr{Name: "kernel_shape", Value: long(s[2:])}).Attribute...)
		}
	}
}
