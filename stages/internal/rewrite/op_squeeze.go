package rewrite

import "github.com/runexp/runexp/stages/internal/onnx"

// Squeeze and Unsqueeze have their axes as an input from 13 on.
var squeeze = []converter{{"Squeeze", Oldest, 12, axesToInput}, {"Unsqueeze", Oldest, 12, axesToInput}}

func axesToInput(e *edit, n onnx.Node) error {
	e.attrToInput(n, "axes", 1)
	e.keep(n)
	return nil
}
