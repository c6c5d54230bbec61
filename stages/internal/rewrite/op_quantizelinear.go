package rewrite

import (
	"errors"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// QuantizeLinear and DequantizeLinear define from 19 on how numbers too large for 8-bit floats are
// converted, from 21 on blocks with a scale and further integer types, and from 23 on the precision of the
// division. For 8-bit integers with a scale for all, or for each index on an axis, opset 17 is the same.
var quantizeLinear = []converter{
	{"QuantizeLinear", 19, Newest, eightBits},
	{"DequantizeLinear", 19, Newest, eightBits},
}

func eightBits(e *edit, n onnx.Node) error {
	to := onnxpb.TensorProto_DataType(n.Int("output_dtype", 0))
	if n.Int("block_size", 0) != 0 || to != 0 && to != onnxpb.TensorProto_UINT8 &&
		to != onnxpb.TensorProto_FLOAT && (to != onnxpb.TensorProto_INT8 || n.In(2) == "") {
		return errors.New(onnx.Quantised)
	}
	for _, attr := range []string{"saturate", "output_dtype", "precision", "block_size"} {
		drop(n, attr)
	}
	e.keep(n)
	return nil
}
