package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Gelu was introduced in opset 20: x/2 · (1 + erf(x/√2)), or with a hyperbolic tangent for erf, x/2 · (1 +
// tanh(√(2/π) · (x + 0.044715·x³))). ONNX Runtime's optimiser writes its own operator, with a bias or
// without; QuickGelu is x·σ(αx).
var gelu = []converter{
	{"Gelu", 20, Newest, func(e *edit, n onnx.Node) error {
		return e.gelu(n.Output[0], n.In(0), n.Text("approximate", "none"))
	}},
	{"com.microsoft.Gelu", Oldest, Newest, func(e *edit, n onnx.Node) error {
		return e.gelu(n.Output[0], n.In(0), "none")
	}},
	{"com.microsoft.BiasGelu", Oldest, Newest, func(e *edit, n onnx.Node) error {
		return e.gelu(n.Output[0], e.sum(n.Output[0], n.In(0), n.In(1)), "none")
	}},
	{"com.microsoft.FastGelu", Oldest, Newest, func(e *edit, n onnx.Node) error {
		return e.gelu(n.Output[0], e.sum(n.Output[0], n.In(0), n.In(1)), "tanh")
	}},
	{"com.microsoft.QuickGelu", Oldest, Newest, func(e *edit, n onnx.Node) error {
		e.swish(n.Output[0], n.In(0), n.Float("alpha", 1.702))
		return nil
	}},
}

// gelu writes a Gelu of x whose output is called out.
func (e *edit) gelu(out, x, approximate string) error {
	var s string
	switch approximate {
	case "none":
		s = e.op(out, "Erf",
			[]string{e.op(out, "Div", []string{x, e.scalar(out+"/root2", 1.4142135623730951)})})
	case "tanh":
		cube := e.op(out, "Mul", []string{e.op(out, "Mul", []string{x, x}), x})
		inner := e.op(out, "Add",
			[]string{x, e.op(out, "Mul", []string{cube, e.scalar(out+"/cubic", 0.044715)})})
		s = e.op(out, "Tanh",
			[]string{e.op(out, "Mul", []string{inner, e.scalar(out+"/slope", 0.7978845608028654)})})
	default:
		return fmt.Errorf("it is approximated by %q, which isn't known", approximate)
	}
	sum := e.op(out, "Add", []string{s, e.scalar(out+"/one", 1)})
	product := e.op(out, "Mul", []string{x, sum})
	e.to(out, "Mul", []string{product, e.scalar(out+"/half", 0.5)})
	return nil
}

// sum writes the sum of the values with a name, and returns its name.
func (e *edit) sum(hint string, values ...string) string {
	sum := ""
	for _, v := range values {
		switch {
		case sum == "":
			sum = v
		case v != "":
			sum = e.op(hint, "Add", []string{sum, v})
		}
	}
	return sum
}
