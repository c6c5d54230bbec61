package rewrite

import (
	"github.com/runexp/runexp/stages/internal/onnx"
)

// ReduceSum has its axes as an input from 13 on, the other reductions from 18 on.
var reduce = reductions()

func reductions() []pass {
	out := []pass{{"ReduceSum", Oldest, 12, func(e *edit, n onnx.Node) error {
		e.attrToInput(n, "axes", 1)
		e.keep(n)
		return nil
	}}}
	for _, op := range []string{"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSumSquare"} {
		out = append(out, pass{op, 18, Newest, axesToAttribute})
	}
	return out
}

func axesToAttribute(e *edit, n onnx.Node) error {
	noop := n.Int("noop_with_empty_axes", 0) != 0
	if err := e.inputToAttr(n, "axes", 1); err != nil {
		return err
	}
	drop(n, "noop_with_empty_axes")
	if len(n.Ints("axes")) == 0 {
		drop(n, "axes")
		if noop {
			e.to(n.Output[0], "Identity", n.Input[:1])
			return nil
		}
	}
	e.keep(n)
	return nil
}
