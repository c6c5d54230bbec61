package rewrite

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Mod computes from 28 on the remainder with the divisor's sign also for floats, a − ⌊a/b⌋·b; before only
// for integers.
var mod = []converter{{"Mod", 28, Newest, func(e *edit, n onnx.Node) error {
	if n.Int("fmod", 0) != 0 || e.elem(n.In(0)) != onnxpb.TensorProto_FLOAT {
		e.keep(n)
		return nil
	}
	hint := n.Output[0]
	times := e.op(hint, "Floor", []string{e.op(hint, "Div", n.Input[:2])})
	e.to(hint, "Sub", []string{n.In(0), e.op(hint, "Mul", []string{times, n.In(1)})})
	return nil
}}}
