package rewrite

import "github.com/runexp/runexp/stages/internal/onnx"

// Cast and CastLike say from 19 on what to do with numbers too large for 8-bit floats, which opset 17 doesn't
// have.
var cast = []converter{{"Cast", 19, Newest, dropSaturate}, {"CastLike", 19, Newest, dropSaturate}}

func dropSaturate(e *edit, n onnx.Node) error {
	drop(n, "saturate")
	e.keep(n)
	return nil
}
