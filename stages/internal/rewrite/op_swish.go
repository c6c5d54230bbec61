package rewrite

import "github.com/runexp/runexp/stages/internal/onnx"

// Swish was introduced in opset 24: x·σ(αx). SwiGLU, of 28, multiplies a second input by that.
var swish = []converter{
	{"Swish", 24, Newest, func(e *edit, n onnx.Node) error {
		e.swish(n.Output[0], n.In(0), n.Float("alpha", 1))
		return nil
	}},
	{"SwiGLU", 28, Newest, func(e *edit, n onnx.Node) error {
		gate := e.value(n.Output[0], "Swish")
		e.swish(gate, n.In(0), n.Float("alpha", 1))
		e.to(n.Output[0], "Mul", []string{gate, n.In(1)})
		return nil
	}},
}

// swish writes a Swish of x whose output is called out.
func (e *edit) swish(out, x string, alpha float32) {
	z := x
	if alpha != 1 {
		z = e.op(out, "Mul", []string{x, e.scalar(out+"/alpha", alpha)})
	}
	e.to(out, "Mul", []string{x, e.op(out, "Sigmoid", []string{z})})
}
