package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Gelu came at 20: x/2 · (1 + erf(x/√2)), or with a hyperbolic tangent for erf,
// x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))).
var gelu = []pass{{"Gelu", 20, Newest, func(e *edit, n onnx.Node) error {
	x, hint := n.In(0), n.Output[0]
	var s string
	switch approximate := n.Text("approximate", "none"); approximate {
	case "none":
		s = e.op(hint, "Erf", []string{e.op(hint, "Div", []string{x, e.scalar(hint+"/root2", 1.4142135623730951)})})
	case "tanh":
		cube := e.op(hint, "Mul", []string{e.op(hint, "Mul", []string{x, x}), x})
		inner := e.op(hint, "Add", []string{x, e.op(hint, "Mul", []string{cube, e.scalar(hint+"/cubic", 0.044715)})})
		s = e.op(hint, "Tanh", []string{e.op(hint, "Mul", []string{inner, e.scalar(hint+"/slope", 0.7978845608028654)})})
	default:
		return fmt.Errorf("it is approximated by %q, which isn't known", approximate)
	}
	sum := e.op(hint, "Add", []string{s, e.scalar(hint+"/one", 1)})
	product := e.op(hint, "Mul", []string{x, sum})
	e.to(n.Output[0], "Mul", []string{product, e.scalar(hint+"/half", 0.5)})
	return nil
}}}
