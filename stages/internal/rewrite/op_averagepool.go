package rewrite

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// AveragePool got dilations at 19.
var averagePool = []pass{{"AveragePool", 19, Newest, func(e *edit, n onnx.Node) error {
	if slices.ContainsFunc(n.Ints("dilations"), func(d int) bool { return d != 1 }) {
		return fmt.Errorf("opset %d has no dilated AveragePool", Opset)
	}
	drop(n, "dilations")
	e.keep(n)
	return nil
}}}
