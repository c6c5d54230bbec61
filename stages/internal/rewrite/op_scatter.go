package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Scatter is called ScatterElements from 11 on; the reductions max and min were introduced in opset 18.
var scatter = []converter{
	{"Scatter", 9, Newest, func(e *edit, n onnx.Node) error {
		n.OpType = "ScatterElements"
		e.keep(n)
		return nil
	}},
	{"ScatterElements", 18, Newest, scatterBy},
	{"ScatterND", 18, Newest, scatterBy},
}

func scatterBy(e *edit, n onnx.Node) error {
	switch by := n.Text("reduction", "none"); by {
	case "none", "add", "mul":
		e.keep(n)
		return nil
	default:
		return fmt.Errorf("opset %d can't scatter by %s", Opset, by)
	}
}
