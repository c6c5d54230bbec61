package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// ReduceSum has its axes as an input from 13 on, the other reductions from 18 on. ReduceLogSum is a
// logarithm after a sum, and GlobalLpPool a reduction over all positions.
var reduce = reductions()

func reductions() []converter {
	out := []converter{{"ReduceSum", Oldest, 12, func(e *edit, n onnx.Node) error {
		e.attrToInput(n, "axes", 1)
		e.keep(n)
		return nil
	}}}
	out = append(out,
		converter{"GlobalLpPool", Oldest, Newest, globalLpPool},
		converter{"ReduceLogSum", Oldest, 17, logSum},
		converter{"ReduceLogSum", 18, Newest, func(e *edit, n onnx.Node) error {
			if err := e.inputToAttr(n, "axes", 1); err != nil {
				return err
			}
			if n.Int("noop_with_empty_axes", 0) != 0 && len(n.Ints("axes")) == 0 {
				e.to(n.Output[0], "Log", n.Input[:1])
				return nil
			}
			return logSum(e, n)
		}},
	)
	for _, op := range []string{"ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
		"ReduceMin", "ReduceProd", "ReduceSumSquare"} {
		out = append(out, converter{op, 18, Newest, axesToAttribute})
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

// logSum writes the logarithm of a sum whose axes are an attribute.
func logSum(e *edit, n onnx.Node) error {
	in := n.Input[:1]
	if axes := n.Ints("axes"); len(axes) > 0 {
		in = []string{n.In(0), e.ints(n.Output[0]+"/axes", axes...)}
	}
	sum := e.op(n.Output[0], "ReduceSum", in, onnx.Attr{Name: "keepdims", Value: n.Int("keepdims", 1)})
	e.to(n.Output[0], "Log", []string{sum})
	return nil
}

func globalLpPool(e *edit, n onnx.Node) error {
	rank, err := e.rank(n.In(0))
	if err != nil {
		return err
	}
	norms := map[int]string{1: "ReduceL1", 2: "ReduceL2"}
	p := n.Int("p", 2)
	if norms[p] == "" {
		return fmt.Errorf("its p is %d, and only 1 and 2 are supported", p)
	}
	var axes []int64
	for a := 2; a < rank; a++ {
		axes = append(axes, int64(a))
	}
	e.to(n.Output[0], norms[p], n.Input[:1], onnx.Attr{Name: "axes", Value: axes})
	return nil
}
