package rewrite

import "github.com/runexp/runexp/stages/internal/onnx"

// Range says from 27 on in which precision it counts half-precision numbers, which are single by now.
var rangeOf = []converter{{"Range", 27, Newest, func(e *edit, n onnx.Node) error {
	drop(n, "stash_type")
	e.keep(n)
	return nil
}}}
