package rewrite

import "github.com/runexp/runexp/stages/internal/onnx"

// Slice had its numbers as attributes up to 9.
var slice = []converter{{"Slice", Oldest, 9, func(e *edit, n onnx.Node) error {
	for i, name := range []string{"starts", "ends", "axes"} {
		e.attrToInput(n, name, i+1)
	}
	e.keep(n)
	return nil
}}}
