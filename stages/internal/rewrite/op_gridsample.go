package rewrite

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// GridSample's modes were renamed at 20, when it learnt other ranks than 4.
var gridSample = []pass{{"GridSample", 20, Newest, func(e *edit, n onnx.Node) error {
	old := map[string]string{"linear": "bilinear", "cubic": "bicubic"}
	if mode, ok := old[n.Text("mode", "linear")]; ok {
		setText(n, "mode", mode)
	}
	e.keep(n)
	return nil
}}}

func setText(n onnx.Node, name, value string) {
	drop(n, name)
	n.Attribute = append(n.Attribute, &onnxpb.AttributeProto{Name: name, Type: onnxpb.AttributeProto_STRING, S: []byte(value)})
}
