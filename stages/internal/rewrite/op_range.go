package rewrite

import "github.com/runexp/runexp/stages/internal/onnx"

// Range defines from 27 on in which precision it counts half-precision numbers, which are converted to
// single precision here.
var rangeOf = []converter{{"Range", 27, Newest, func(e *edit, n onnx.Node) error {
	drop(n, "stash_type")
	e.keep(n)
	return nil
}}}
