package rewrite

import (
	"github.com/runexp/runexp/stages/internal/onnx"
)

// Upsample became Resize at 10. Its scales were an attribute up to 8.
var upsample = []converter{{"Upsample", Oldest, 9, func(e *edit, n onnx.Node) error {
	scales := n.In(1)
	if e.version < 9 {
		v := n.Floats("scales")
		scales = e.weight(onnx.FloatTensor(e.m.Fresh(n.Output[0]+"/scales"), v, len(v)))
		drop(n, "scales")
	}
	n.OpType = "Resize"
	n.Input = []string{n.In(0), "", scales}
	asymmetric(n)
	e.keep(n)
	return nil
}}}
