package rewrite

import "github.com/runexp/runexp/stages/internal/onnx"

// Mish was introduced in opset 18: x · tanh(log(1 + eˣ)).
var mish = []converter{{"Mish", 18, Newest, func(e *edit, n onnx.Node) error {
	soft := e.op(n.Output[0], "Softplus", n.Input[:1])
	e.to(n.Output[0], "Mul", []string{n.In(0), e.op(n.Output[0], "Tanh", []string{soft})})
	return nil
}}}
