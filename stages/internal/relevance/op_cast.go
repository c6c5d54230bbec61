package relevance

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Cast converts element types. It is the identity between floating-point types; conversions to integers or
// booleans have no derivative.
var opCast = &Op{
	Type: "Cast", Kind: Move,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		from, to := b.g.Types[n.Input[0]].Elem, onnxpb.TensorProto_DataType(n.Int("to", 0))
		switch {
		case !isReal(from) || !isReal(to):
			return nil
		case from == to:
			return []Value{dy[0]}
		}
		return []Value{b.Cast(dy[0], from)}
	},
	Examples: []Example{{Name: "nothing", Inputs: [][]int{{2, 3}},
		Attrs: []onnx.Attr{{Name: "to", Value: 1}}}},
}

func isReal(t onnxpb.TensorProto_DataType) bool {
	switch t {
	case onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_DOUBLE, onnxpb.TensorProto_FLOAT16,
		onnxpb.TensorProto_BFLOAT16:
		return true
	}
	return false
}
