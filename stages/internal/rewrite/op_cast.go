package rewrite

import "github.com/runexp/runexp/stages/internal/onnx"

// Cast and CastLike define from 19 on how numbers too large for 8-bit floats are converted, and from 24 on
// how exponents are rounded; opset 17 has neither.
var cast = []converter{{"Cast", 19, Newest, dropSmallFloats}, {"CastLike", 19, Newest, dropSmallFloats}}

func dropSmallFloats(e *edit, n onnx.Node) error {
	drop(n, "saturate")
	drop(n, "round_mode")
	e.keep(n)
	return nil
}
