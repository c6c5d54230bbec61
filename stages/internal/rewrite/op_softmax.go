package rewrite

import (
	"github.com/runexp/runexp/stages/internal/onnx"
)

// Up to 12, Softmax and similar operators treated the axes from a given one to the last as one, by default
// from 1 on; from 13 on they use a single axis, by default the last.
var softmax = []converter{{"Hardmax", Oldest, 12, coerced}, {"LogSoftmax", Oldest, 12, coerced},
	{"Softmax", Oldest, 12, coerced}}

func coerced(e *edit, n onnx.Node) error {
	axis := n.Int("axis", 1)
	drop(n, "axis")
	last := onnx.Attr{Name: "axis", Value: -1}
	rank, err := e.rank(n.In(0))
	if axis == -1 || err == nil && axis == rank-1 {
		e.to(n.Output[0], n.OpType, n.Input[:1], last)
		return nil
	}
	x, hint := n.In(0), n.Output[0]
	flat := e.op(hint, "Flatten", []string{x}, onnx.Attr{Name: "axis", Value: axis})
	flat = e.op(hint, n.OpType, []string{flat}, last)
	e.to(n.Output[0], "Reshape", []string{flat, e.op(hint, "Shape", []string{x})})
	return nil
}
